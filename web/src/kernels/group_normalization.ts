// InstanceNormalization and GroupNormalization: over the pixels of some channels. LpNormalization: over one axis.
import { type Context, type DTypeName, type Kernel, KernelError, type Shader, type Spec, type StorageType, type Tensor } from '../jsep/kernel';
import { inLanes, type Lanes, load, stored } from '../wgsl/lanes';
import { normalizeAxis, sizeOf } from '../wgsl/shape';
import { aroundAxis, type RowLayout, rowMain, rowsOf } from './_rows';

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

interface GroupSpec extends Spec {
  readonly layout: RowLayout;
  readonly storage: StorageType;
}

/** A row is the channels of a group with all their pixels; scale and bias belong to a channel. */
const GROUP: Shader<GroupSpec> = {
  name: 'group_normalization',
  wgsl({ layout, storage }) {
    const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
    // Rows of 4 elements at a time never mix channels: the pixels of a channel are a multiple of 4 then.
    return rowMain({
      layout, element: `let x = ${load(storage, lanes, 'x[at]')};`,
      phases: [
        { accumulators: [{ name: 'total', type: 'F', start: '0.0' }], step: 'total += x;', merge: 'total += other_total;', after: 'let mean = total / f32(u.length);' },
        {
          accumulators: [{ name: 'squares', type: 'F', start: '0.0' }], step: 'let d = x - mean; squares += d * d;', merge: 'squares += other_squares;',
          after: 'let inverse = 1.0 / sqrt(squares / f32(u.length) + u.epsilon);',
        },
      ],
      write: `let channel = row % u.groups * u.group_channels + step / u.pixels;
    y[at] = ${stored(storage, lanes, '(x - mean) * (inverse * f32(scale[channel])) + f32(bias[channel])')};`,
    });
  },
};

/** x is [images, channels, …]. */
function normalizeGroups(ctx: Context, x: Tensor, scale: Tensor, bias: Tensor, groups: number, epsilon: number): void {
  const y = ctx.output(0, x.dims);
  if (x.size === 0) return;
  const channels = x.dims[1];
  if (groups <= 0 || channels % groups !== 0 || scale.size !== channels || bias.size !== channels) {
    throw new KernelError(`a normalisation of ${channels} channels in ${groups} groups with scale [${scale.dims}] and bias [${bias.dims}]`);
  }
  const pixels = sizeOf(x.dims.slice(2));
  const length = (channels / groups) * pixels;
  // Where a channel's pixels are not whole vectors, neither is the row to be.
  const rows = rowsOf(ctx, x.dims[0] * groups, length, 1);
  const whole = rows.layout.wide !== 'steps' || pixels % 4 === 0;
  const layout: RowLayout = whole ? rows.layout : { ...rows.layout, wide: 'none' };
  const lanes: Lanes = layout.wide === 'steps' ? 4 : 1;
  ctx.dispatch({
    shader: { ...GROUP, name: `group_normalization__team_${layout.team}` }, spec: { layout, storage: x.storage },
    inputs: { x: inLanes(x, lanes), scale, bias }, outputs: { y: inLanes(y, lanes) },
    uniforms: { count: rows.uniforms.count, steps: length / lanes, inner: 1, length, groups, group_channels: channels / groups, pixels: pixels / lanes, epsilon },
    f32: ['epsilon'],
    workgroups: rows.workgroups,
  });
}

const instance: Kernel<number> = {
  op: 'InstanceNormalization', types: [FLOATS], attributes: (a) => a.number('epsilon', 1e-5),
  resolve: (ctx, epsilon) => normalizeGroups(ctx, ctx.input(0), ctx.input(1), ctx.input(2), ctx.input(0).dims[1], epsilon),
};

const group: Kernel<{ epsilon: number; groups: number }> = {
  op: 'GroupNormalization', types: [FLOATS], attributes: (a) => ({ epsilon: a.number('epsilon', 1e-5), groups: a.integer('num_groups', 1) }),
  resolve: (ctx, { epsilon, groups }) => normalizeGroups(ctx, ctx.input(0), ctx.input(1), ctx.input(2), groups, epsilon),
};

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
      layout, element: `let x = ${load(storage, lanes, 'x[at]')};`,
      phases: [{
        accumulators: [{ name: 'total', type: 'F', start: '0.0' }], step: p === 1 ? 'total += abs(x);' : 'total += x * x;', merge: 'total += other_total;',
        after: `let norm = ${p === 1 ? 'total' : 'sqrt(total)'}; let divisor = select(norm, R(1.0), norm == R(0.0));`,
      }],
      write: `y[at] = ${stored(storage, lanes, 'x / divisor')};`,
    });
  },
};

const lp: Kernel<{ axis: number; p: number }> = {
  op: 'LpNormalization', types: [FLOATS], attributes: (a) => ({ axis: a.integer('axis', -1), p: a.integer('p', 2) }),
  resolve(ctx, { axis, p }) {
    const x = ctx.input(0);
    const y = ctx.output(0, x.dims);
    if (x.size === 0) return;
    const rows = rowsOf(ctx, ...aroundAxis(x, normalizeAxis(axis, x.dims.length)));
    ctx.dispatch({
      shader: { ...LP, name: `lp_normalization__team_${rows.layout.team}` }, spec: { layout: rows.layout, storage: x.storage, p },
      inputs: { x: inLanes(x, rows.lanes) }, outputs: { y: inLanes(y, rows.lanes) }, uniforms: rows.uniforms, workgroups: rows.workgroups,
    });
  },
};

export default [instance, group, lp];
