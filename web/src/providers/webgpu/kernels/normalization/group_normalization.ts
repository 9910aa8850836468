// InstanceNormalization and GroupNormalization: over the pixels of some channels. LpNormalization: over one axis.
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  NHWC_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { inLanes, type Lanes, laneType, load, stored } from '../../wgsl/lanes';
import { normalizeAxis, sizeOf } from '../../../../contract/shape';
import { aroundAxis, dispatchRows, type RowLayout, rowMain, rowsOf, SPREAD, SPREAD_KEPT } from '../shared/rows';

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

interface GroupSpec extends Spec {
  readonly layout: RowLayout;
  readonly storage: StorageType;
  /**
   * Channels last: a row is a group, some channels of each pixel, or one channel of each (4 such rows are side by
   * side).
   */
  readonly last?: 'groups' | 'channels';
}

const IN_GROUP = 'row % u.groups * u.group_channels + step % u.group_channels';
const CHANNEL = {
  first: 'row % u.groups * u.group_channels + step / u.pixels',
  groups: IN_GROUP,
  channels: 'row % u.inner',
};

const PLACE_IN_GROUP = `let pixel = i / u.channels; let own = i % u.channels;
  let row = pixel / u.pixels * u.groups + own / u.group_channels;
  let step = pixel % u.pixels * u.group_channels + own % u.group_channels;`;

/** A row is the channels of a group with all their pixels; each channel has a scale and a bias. */
const GROUP: Shader<GroupSpec> = {
  name: 'group_normalization',
  wgsl({ layout, storage, last }) {
    const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
    const index = last === 'groups' ? 'here' : 'at';
    const here =
      last === 'groups'
        ? `let here = (row / u.groups * u.pixels + step / u.group_channels) * u.channels + ${IN_GROUP};\n    `
        : '';
    // With channels first, 4 elements of a row are in one channel: its number of pixels is then a multiple of 4.
    const each = laneType('f32', last ? lanes : 1);
    return rowMain({
      layout,
      element: `${here}let x = ${load(storage, lanes, `x[${index}]`)};`,
      phases: SPREAD,
      ...(last === 'groups' && { place: PLACE_IN_GROUP }),
      write: `let channel = ${CHANNEL[last ?? 'first']};
    y[${index}] = ${stored(
      storage,
      lanes,
      `((x - mean) - rest) * (inverse * ${each}(scale[channel])) + ${each}(bias[channel])`,
    )};`,
    });
  },
};

/** x is [images, channels, …], or, with `last`, [images, …, channels]. */
function normalizeGroups(ctx: Context, channelsLast: boolean, wanted: number | 'channels', epsilon: number): void {
  const [x, scale, bias] = [0, 1, 2].map((i) => ctx.input(i));
  const y = ctx.output(0, x.dims);
  if (x.size === 0) return;
  const channels = x.dims[channelsLast ? x.dims.length - 1 : 1];
  const last = channelsLast && channels > 1; // one channel has the same order in both layouts
  const groups = wanted === 'channels' ? channels : wanted;
  if (groups <= 0 || channels % groups !== 0 || scale.size !== channels || bias.size !== channels) {
    throw new KernelError(
      `a normalization of ${channels} channels in ${groups} groups with scale [${scale.dims}] and bias [${bias.dims}]`,
    );
  }
  const pixels = sizeOf(x.dims) / (x.dims[0] * channels);
  const rows = last
    ? rowsLast(ctx, x.dims[0], pixels, channels, groups)
    : rowsFirst(ctx, x.dims[0], pixels, channels, groups);
  const lanes: Lanes = rows.layout.wide === 'none' ? 1 : 4;
  const each = (tensor: Tensor) => inLanes(tensor, last ? lanes : 1);
  const dispatch = {
    shader: { ...GROUP, name: `group_normalization__team_${rows.layout.team}` },
    spec: {
      layout: rows.layout,
      storage: x.storage,
      ...(last && { last: groups === channels ? 'channels' : 'groups' }),
    },
    inputs: { x: inLanes(x, lanes), scale: each(scale), bias: each(bias) },
    outputs: { y: inLanes(y, lanes) },
    uniforms: { ...rows.uniforms, length: (channels / groups) * pixels, epsilon },
    f32: ['epsilon'],
    workgroups: rows.workgroups,
  };
  dispatchRows(ctx, dispatch, SPREAD_KEPT);
}

interface GroupRows {
  readonly layout: RowLayout;
  readonly uniforms: Readonly<Record<string, number>>;
  readonly workgroups: [number, number, number];
}

function rowsFirst(ctx: Context, images: number, pixels: number, channels: number, groups: number): GroupRows {
  const length = (channels / groups) * pixels;
  // If a channel's pixels are not whole vectors, the row must not be read in vectors, either.
  const rows = rowsOf(ctx, images * groups, length, 1);
  const whole = rows.layout.wide !== 'steps' || pixels % 4 === 0;
  const layout: RowLayout = whole ? rows.layout : { ...rows.layout, wide: 'none', once: false };
  const lanes = layout.wide === 'steps' ? 4 : 1;
  const sizes = {
    count: rows.uniforms.count,
    steps: length / lanes,
    inner: 1,
    groups,
    group_channels: channels / groups,
    pixels: pixels / lanes,
  };
  return { layout, uniforms: sizes, workgroups: rows.workgroups };
}

function rowsLast(ctx: Context, images: number, pixels: number, channels: number, groups: number): GroupRows {
  if (groups === channels) return rowsOf(ctx, images, pixels, channels);
  const each = channels / groups;
  const rows = rowsOf(ctx, images * groups, each * pixels, 1);
  const lanes = each % 4 === 0 ? 4 : 1;
  const sizes = {
    count: rows.uniforms.count,
    steps: (each * pixels) / lanes,
    inner: 1,
    groups,
    group_channels: each / lanes,
    pixels,
    channels: channels / lanes,
  };
  return {
    layout: { ...rows.layout, wide: lanes === 4 ? 'steps' : 'none', once: false },
    uniforms: sizes,
    workgroups: rows.workgroups,
  };
}

const instances = [false, true].map(
  (last): Kernel<number> => ({
    op: 'InstanceNormalization',
    domain: last ? NHWC_DOMAIN : undefined,
    types: [FLOATS],
    attributes: (a) => a.number('epsilon', 1e-5),
    resolve: (ctx, epsilon) => normalizeGroups(ctx, last, 'channels', epsilon),
  }),
);

const groups = [false, true].map(
  (last): Kernel<{ epsilon: number; groups: number }> => ({
    op: 'GroupNormalization',
    domain: last ? NHWC_DOMAIN : undefined,
    types: [FLOATS],
    attributes: (a) => ({ epsilon: a.number('epsilon', 1e-5), groups: a.integer('num_groups', 1) }),
    resolve: (ctx, { epsilon, groups: wanted }) => normalizeGroups(ctx, last, wanted, epsilon),
  }),
);

interface LpSpec extends Spec {
  readonly layout: RowLayout;
  readonly storage: StorageType;
  readonly p: number;
}

const LP: Shader<LpSpec> = {
  name: 'lp_normalization',
  wgsl({ layout, storage, p }) {
    const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
    return rowMain({
      layout,
      element: `let x = ${load(storage, lanes, 'x[at]')};`,
      phases: [
        {
          accumulators: [{ name: 'total', type: 'F', start: '0.0' }],
          step: p === 1 ? 'total += abs(x);' : 'total += x * x;',
          merge: 'total += other_total;',
          after: `let norm = ${p === 1 ? 'total' : 'sqrt(total)'}; let divisor = select(norm, R(1.0), norm == R(0.0));`,
        },
      ],
      write: `y[at] = ${stored(storage, lanes, 'x / divisor')};`,
    });
  },
};

const lp: Kernel<{ axis: number; p: number }> = {
  op: 'LpNormalization',
  types: [FLOATS],
  attributes: (a) => ({ axis: a.integer('axis', -1), p: a.integer('p', 2) }),
  resolve(ctx, { axis, p }) {
    const x = ctx.input(0);
    const y = ctx.output(0, x.dims);
    if (x.size === 0) return;
    const rows = rowsOf(ctx, ...aroundAxis(x, normalizeAxis(axis, x.dims.length)));
    const dispatch = {
      shader: { ...LP, name: `lp_normalization__team_${rows.layout.team}` },
      spec: { layout: rows.layout, storage: x.storage, p },
      inputs: { x: inLanes(x, rows.lanes) },
      outputs: { y: inLanes(y, rows.lanes) },
      uniforms: rows.uniforms,
      workgroups: rows.workgroups,
    };
    dispatchRows(ctx, dispatch, { divisor: 'F' });
  },
};

export default [...instances, ...groups, lp];
