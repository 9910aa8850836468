// Pools over one and two axes, and global ones over any number.
import type { Attributes } from '../../../contract/attributes';
import { type DTypeName, NHWC_DOMAIN, type Requirement } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';
import { type Geometry, readWindow, slide } from '../../../contract/window';
import { DType } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { asBefore, firstSpatial, inTwo, type Layout, overTwo, padImage, paddingOf, spatialOf } from './shared/images';

/** The relation of a pool to WebNN's. */
interface Kind {
  readonly method: 'maxPool2d' | 'averagePool2d';
  /** True if its pads are not elements: otherwise they are zeros, or -Infinity. */
  readonly skipsPads: boolean;
  /** Factors of the results at each place along an axis; undefined: none. */
  readonly factors?: (geometry: Geometry, axis: number) => readonly number[];
  readonly before?: (f: Formula, x: MlOperand) => MlOperand;
  readonly after?: (f: Formula, y: MlOperand) => MlOperand;
}

/** Of up to four axes, for WebNN. */
function power(f: Formula, x: MlOperand, exponent: number): MlOperand {
  if (exponent === 1) return x;
  const row = f.reshape(x, [sizeOf(x.shape)]);
  return f.reshape(f.plain('pow', row, f.constant([exponent], [], x.dataType)), x.shape);
}

/** WebNN's means are over all taps: turns them into means over the valid taps, or into sums. */
const ofCounted =
  (whole: boolean) =>
  ({ input, kernel, strides, dilations, begins, ends, output }: Geometry, axis: number): number[] => {
    const [least, end] = whole ? [-begins[axis], input[axis] + ends[axis]] : [0, input[axis]];
    return Array.from({ length: output[axis] }, (_, i) => {
      const first = i * strides[axis] - begins[axis];
      const taps = Array.from({ length: kernel[axis] }, (_, tap) => first + tap * dilations[axis]);
      return kernel[axis] / Math.max(taps.filter((at) => at >= least && at < end).length, 1);
    });
  };

const sums = ({ kernel, output }: Geometry, axis: number) => new Array<number>(output[axis]).fill(kernel[axis]);

const KINDS: { readonly [op: string]: (attributes: Attributes) => Kind } = {
  MaxPool: () => ({ method: 'maxPool2d', skipsPads: true }),
  AveragePool: (attributes) => {
    const whole = attributes.integer('count_include_pad', 0) === 1;
    return { method: 'averagePool2d', skipsPads: !whole, factors: ofCounted(whole) };
  },
  LpPool: (attributes) => {
    const p = attributes.integer('p', 2);
    return {
      method: 'averagePool2d',
      skipsPads: false,
      factors: sums,
      before: (f, x) => power(f, f.plain('abs', x), p),
      after: (f, y) => power(f, y, 1 / p),
    };
  },
};

/** For integers: if pads count, so do those after them. */
export const integerMean = (attributes: Attributes): Kind =>
  attributes.integer('count_include_pad', 0) === 1
    ? { method: 'averagePool2d', skipsPads: false }
    : KINDS.AveragePool(attributes);

export const pool =
  (kindOf: (attributes: Attributes) => Kind, layout: Layout) =>
  ({ attributes, inputs }: Call): Emit => {
    const kind = kindOf(attributes);
    const spatial = spatialOf(inputs[0]!.dims, layout);
    const window = readWindow(attributes);
    const along = slide(window, spatial, window.kernelShape, true);
    const floats = [DType.float32, DType.float16, DType.int8].includes(inputs[0]!.dtype);
    const spread = along.dilations.some((step, i) => step > 1 && along.kernel[i] > 1);
    const byTaps = spread || spatial.length > 2 || !floats;
    const geometry = byTaps ? along : overTwo(along);
    const { input, kernel, strides, dilations, begins, output } = geometry;
    const reach = kernel.map((taps, i) => (taps - 1) * dilations[i] + 1);
    // Up to the end of the last window.
    const ends = output.map((size, i) => Math.max((size - 1) * strides[i] + reach[i] - input[i] - begins[i], 0));
    const own = kind.skipsPads && !byTaps && isSame(geometry, ends);
    const options = { windowDimensions: kernel, strides, layout, ...(own && { padding: paddingOf(begins, ends) }) };
    return (f, [x]) => {
      let image = kind.before?.(f, x) ?? f.counted(x);
      if (!byTaps) image = inTwo(f, image, firstSpatial(layout));
      const least = floats ? -Infinity : 0;
      const pad = kind.method === 'maxPool2d' ? least : 0;
      if (!own) [image] = f.moved(image, (one) => [padImage(f, one, layout, begins, ends, pad)]);
      let y = byTaps ? slid(f, image, geometry, kind, layout) : f.plain(kind.method, image, options);
      if (kind.factors && !own) y = grown(f, y, kind.factors, geometry, layout);
      return asBefore(f, kind.after?.(f, y) ?? y, byTaps ? 2 : spatial.length, layout);
    };
  };

/** TFLite excludes only pads of this form; all others are zeros to it. */
function isSame({ input, strides, kernel, begins, output }: Geometry, ends: readonly number[]): boolean {
  return output.every((size, i) => {
    const all = Math.max((size - 1) * strides[i] + kernel[i] - input[i], 0);
    return size === Math.ceil(input[i] / strides[i]) && begins[i] === all >> 1 && ends[i] === all - begins[i];
  });
}

/** Windows that TFLite lacks: one tap after the other, along each axis. */
function slid(f: Formula, x: MlOperand, geometry: Geometry, { method }: Kind, layout: Layout): MlOperand {
  const { kernel, strides, dilations, output } = geometry;
  return kernel.reduce((image, count, i) => {
    const size = (output[i] - 1) * strides[i] + 1;
    const taps = Array.from({ length: count }, (_, tap) =>
      f.part(image, firstSpatial(layout) + i, tap * dilations[i], size, strides[i]),
    );
    if (method === 'maxPool2d') return taps.reduce((a, b) => f.plain('max', a, b));
    const sum = taps.reduce((a, b) => f.plain('add', a, b));
    return f.plain('mul', sum, f.constant([1 / count], [], sum.dataType));
  }, x);
}

function grown(
  f: Formula,
  y: MlOperand,
  factors: NonNullable<Kind['factors']>,
  geometry: Geometry,
  layout: Layout,
): MlOperand {
  const all = geometry.output.reduce(
    (outer, _, axis) => outer.flatMap((one) => factors(geometry, axis).map((other) => one * other)),
    [1],
  );
  if (all.every((factor) => factor === 1)) return y;
  const alike = all.every((factor) => factor === all[0]);
  const shape = layout === 'nhwc' ? [1, ...geometry.output, 1] : [1, 1, ...geometry.output];
  return f.plain('mul', y, f.constant(alike ? [all[0]] : all, alike ? [] : shape, y.dataType));
}

const REDUCTIONS: { readonly [op: string]: (attributes: Attributes) => readonly [string, number] } = {
  GlobalAveragePool: () => ['reduceMean', 1],
  GlobalMaxPool: () => ['reduceMax', 1],
  GlobalLpPool: (attributes) => ['reduceSum', attributes.integer('p', 2)],
};

export const globalPool =
  (op: string, layout: Layout) =>
  ({ attributes, inputs }: Call): Emit => {
    const [method, p] = REDUCTIONS[op](attributes);
    const axes = spatialOf(inputs[0]!.dims, layout).map((_, i) => firstSpatial(layout) + i);
    const options = { axes, keepDimensions: true };
    return (f, [x]) => {
      if (method !== 'reduceSum') return f.plain(method, x, options);
      return power(f, f.plain(method, power(f, f.plain('abs', x), p), options), 1 / p);
    };
  };

const WINDOWS: readonly Requirement[] = [
  { rank: { input: 0, min: 3, max: 5 }, otherwise: 'more than three spatial axes' },
  { noOutput: 1, otherwise: 'indices of the largest' },
];

const typesOf = (op: string): readonly (readonly DTypeName[])[] => [
  op === 'MaxPool' ? [...FLOATS, 'int8', 'uint8'] : FLOATS,
];

export default [
  ...Object.keys(KINDS).flatMap((op): MlOperator[] => [
    { op, types: typesOf(op), requires: WINDOWS, emit: pool(KINDS[op], 'nchw') },
    { op, domain: NHWC_DOMAIN, types: typesOf(op), requires: WINDOWS, emit: pool(KINDS[op], 'nhwc') },
  ]),
  ...Object.keys(REDUCTIONS).flatMap((op): MlOperator[] => [
    { op, types: [FLOATS], emit: globalPool(op, 'nchw') },
    { op, domain: NHWC_DOMAIN, types: [FLOATS], emit: globalPool(op, 'nhwc') },
  ]),
] satisfies MlOperator[];
