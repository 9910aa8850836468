// MaxPool, AveragePool and LpPool over any number of axes, channels last or second: one thread for each output (or for
// 4 channels of it).
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  NHWC_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { computeType, inLanes, laneType, load, stored } from '../../wgsl/lanes';
import { inBatches } from '../../wgsl/large';
import { poolImages } from './global_pool';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { mathFunctions, orNan } from '../../wgsl/math';
import { sizeOf } from '../../../../contract/shape';
import { type ColumnAttributes, columnsOf, outputColumns, readColumns } from '../shared/columns';
import { type Geometry, readWindow, slide, type WindowAttributes } from '../../../../contract/window';

interface PoolKind {
  readonly types: readonly DTypeName[];
  /**
   * Of type T; `x` is an element, `p` the norm's order, `count` the number of elements (with pads, if they count), an
   * f32.
   */
  readonly start: (type: string) => string;
  readonly step: string;
  readonly finish: string;
}

const LEAST: { readonly [type: string]: string } = { f32: 'T(-infinity())', i32: 'T(-2147483647 - 1)', u32: 'T(0)' };
const POOLS: { readonly [op: string]: PoolKind } = {
  MaxPool: {
    types: ['float32', 'float16', 'int8', 'uint8'],
    start: (type) => LEAST[type],
    step: 'value = max(value, x);',
    finish: 'value',
  },
  AveragePool: {
    types: ['float32', 'float16'],
    start: () => 'T(0.0)',
    step: 'value += x;',
    finish: 'value / count',
  },
  LpPool: {
    types: ['float32', 'float16'],
    start: () => 'T(0.0)',
    // pow of 0 is unreliable.
    step: `if (u.p == 1.0) { value += abs(x); } else if (u.p == 2.0) { value += x * x; }
      else { value += select(or_nan(pow(abs(x), T(u.p)), x), T(0.0), x == T(0.0)); }`,
    finish: `select(select(or_nan(pow(value, T(1.0 / u.p)), value), T(0.0), value == T(0.0)),
        select(value, sqrt(value), u.p == 2.0), u.p <= 2.0 && u.p == floor(u.p))`,
  },
};

interface PoolAttributes {
  readonly window: WindowAttributes;
  readonly includePad: boolean;
  readonly columnMajor: boolean;
  readonly p: number;
  readonly columns: ColumnAttributes;
}

interface PoolSpec extends Spec {
  readonly op: string;
  readonly axes: number;
  readonly lanes: 1 | 4;
  readonly last: boolean;
  readonly includePad: boolean;
  readonly indices: boolean;
  readonly dilated: boolean;
  /** x is in y, which must not be bound twice. */
  readonly inPlace?: boolean;
  readonly storage: StorageType;
}

function attributes(a: Attributes): PoolAttributes {
  return {
    window: readWindow(a),
    includePad: a.integer('count_include_pad', 0) !== 0,
    columnMajor: a.integer('storage_order', 0) !== 0,
    p: a.number('p', 2),
    columns: readColumns(a),
  };
}

/** True if the window is the whole image. */
function coversAll({ input, kernel, dilations, begins, ends }: Geometry): boolean {
  return input.every(
    (size, axis) =>
      size === kernel[axis] && begins[axis] === 0 && ends[axis] === 0 && (size === 1 || dilations[axis] === 1),
  );
}

function resolve(
  ctx: Context,
  op: string,
  last: boolean,
  { window, includePad, columnMajor, p, columns }: PoolAttributes,
): void {
  const x = ctx.input(0);
  const rank = x.dims.length;
  if (rank < 3 || window.kernelShape.length !== rank - 2)
    throw new KernelError(
      `${op}: kernel_shape [${window.kernelShape}] must have a number for each axis of x [${x.dims}] but two`,
    );
  const geometry = slide(window, last ? x.dims.slice(1, -1) : x.dims.slice(2), window.kernelShape, true);
  const from = columnsOf(x, columns.x);
  const channels = last ? from.count : x.dims[1];
  const dims = last ? [x.dims[0], ...geometry.output, channels] : [x.dims[0], channels, ...geometry.output];
  const { y, at } = outputColumns(ctx, dims, columns);
  const indices = ctx.wants(1) ? ctx.output(1, dims, DType.int64) : undefined;
  if (y.size === 0) return;
  const places = last ? [from.pitch, from.first, at.pitch, at.first] : [];
  const lanes = last && !indices && [channels, ...places].every((number) => number % 4 === 0) ? 4 : 1;
  const inPlace = x.id === y.id;
  const ofOwn = !last || [from, at].every(({ pitch }) => pitch === channels);
  if (op === 'AveragePool' && ofOwn && coversAll(geometry)) {
    inBatches(ctx, x.dims[0], { x, y }, (part) => poolImages(ctx, 'GlobalAveragePool', last, p, part.x, part.y));
    return;
  }
  // Strides of an index in one plane of the input, channels second.
  const inPlane = geometry.input.map((_, axis) =>
    (columnMajor ? geometry.input.slice(0, axis) : geometry.input.slice(axis + 1)).reduce(
      (product, size) => product * size,
      1,
    ),
  );
  const spec: PoolSpec = {
    op,
    axes: rank - 2,
    lanes,
    last,
    includePad,
    indices: indices !== undefined,
    dilated: geometry.dilations.some((dilation) => dilation !== 1),
    storage: x.storage,
    ...(inPlace && { inPlace }),
  };
  // Indices are places in all of x.
  inBatches(ctx, indices ? 1 : x.dims[0], { x, y }, (images) => {
    const count = (images.x.dims[0] * sizeOf(dims.slice(1))) / lanes;
    ctx.dispatch({
      shader: SHADER,
      spec,
      inputs: inPlace ? {} : { x: inLanes(images.x, lanes) },
      outputs: { y: inLanes(images.y, lanes), ...(indices && { indices }) },
      uniforms: {
        count,
        channels: channels / lanes,
        ...(last && {
          pitch: from.pitch / lanes,
          first: from.first / lanes,
          y_pitch: at.pitch / lanes,
          y_first: at.first / lanes,
        }),
        input: geometry.input,
        output: geometry.output,
        kernel: geometry.kernel,
        stride: geometry.strides,
        dilation: geometry.dilations,
        pad: geometry.begins,
        ...(includePad && {
          end: geometry.input.map((size, axis) => size + geometry.ends[axis]),
        }),
        ...(op === 'LpPool' && { p }),
        ...(indices && { plane: inPlane }),
      },
      f32: ['p'],
      workgroups: linearWorkgroups(count, ctx.device),
      iterations: sizeOf(geometry.input.map((size, axis) => Math.min(size, geometry.kernel[axis]))),
    });
  });
}

const SHADER: Shader<PoolSpec> = {
  name: 'pool__any',
  wgsl({ op, axes, lanes, last, includePad, indices, dilated, inPlace, storage }) {
    const { start, step, finish } = POOLS[op];
    const type = computeType(storage);
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const out = [...all]
      .reverse()
      .map((axis) => `let out_${axis} = rest % u.output_${axis}; rest = rest / u.output_${axis};`);
    const channel = 'let channel = rest % u.channels; rest = rest / u.channels;';
    // The number of a window's elements before a place; the window begins at `begin`, below 0 in the pad.
    const before = (place: string, axis: number) => {
      const distance = `u32(max(${place} - begin_${axis}, 0))`;
      const elements = dilated ? `(${distance} + u.dilation_${axis} - 1u) / u.dilation_${axis}` : distance;
      return `min(u.kernel_${axis}, ${elements})`;
    };
    // For windows far larger than the image only the part inside is walked.
    const part = all.map(
      (axis) => `let begin_${axis} = i32(out_${axis} * u.stride_${axis} - u.pad_${axis});
  let from_${axis} = ${before('0', axis)};
  let to_${axis} = ${before(`i32(u.input_${axis})`, axis)};`,
    );
    const open = all.map(
      (axis) => `for (var k_${axis} = from_${axis}; k_${axis} < to_${axis}; k_${axis}++) {
    let in_${axis} = u32(begin_${axis}) + k_${axis}${dilated ? ` * u.dilation_${axis}` : ''};`,
    );
    const counted = all.map((axis) =>
      includePad ? `f32(${before(`i32(u.end_${axis})`, axis)})` : `f32(to_${axis} - from_${axis})`,
    );
    const pixel = all.reduce(
      (text, axis) => `(${text}) * u.input_${axis} + in_${axis}`,
      last ? 'rest' : 'rest * u.channels + channel',
    );
    const planes = all.map((axis) => `u.input_${axis}`).join(' * ');
    return `alias T = ${laneType(type, lanes)};
${op === 'MaxPool' && type === 'f32' ? mathFunctions('infinity') : ''}
${op === 'LpPool' ? orNan('or_nan', 'T', laneType('i32', lanes)) : ''}
${linearMain(`  var rest = i;
  ${last ? `${channel}\n  ${out.join('\n  ')}` : `${out.join('\n  ')}\n  ${channel}`}
  var value = ${start(type)};
  ${part.join('\n  ')}
  ${op === 'AveragePool' ? `let count = ${counted.join(' * ')};` : ''}
  ${indices ? 'var best = 0u; var found = false;' : ''}
  ${open.join('\n  ')}
    let x = ${load(
      storage,
      lanes,
      `${inPlace ? 'y' : 'x'}[${last ? `(${pixel}) * u.pitch + u.first + channel` : pixel}]`,
    )};
    ${
      indices
        ? `if (!found || x > value) { found = true;
          best = ${all.map((axis) => `in_${axis} * u.plane_${axis}`).join(' + ')}; }`
        : ''
    }
    ${step}
  ${'}'.repeat(axes)}
  y[${last ? 'i / u.channels * u.y_pitch + u.y_first + channel' : 'i'}] = ${stored(storage, lanes, finish)};
  ${indices ? `indices[i] = i32((rest * u.channels + channel) * ${planes} + best);` : ''}`)}`;
  },
};

export default Object.entries(POOLS).flatMap(([op, { types }]) =>
  [false, true].map(
    (last): Kernel<PoolAttributes> => ({
      op,
      domain: last ? NHWC_DOMAIN : undefined,
      types: [types],
      features: last ? ['columns'] : undefined,
      attributes,
      resolve: (ctx, given) => resolve(ctx, op, last, given),
    }),
  ),
);
