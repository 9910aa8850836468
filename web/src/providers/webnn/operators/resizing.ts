// Resize: WebNN's own if it computes the same, otherwise gathered elements, or sums by the weights of an axis.
import { type Axis, nearestOf, readResize, resizeAxes, type ResizeAttributes } from '../../../contract/resizing';
import { sizeOf } from '../../../contract/shape';
import { DType } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import type { Call, Emit, MlOperator } from '../operator';
import { range } from './shared/calls';
import { MOVED } from './shared/types';

/** For an output position: elements and their weights, which may be repeated. */
type Taps = readonly (readonly [place: number, weight: number])[];

function cubic(d: number, a: number): number {
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/** With antialias the filter is as wide as an output pixel. */
function tapsOf(i: number, { input, factor, step, scale, shift, offset }: Axis, r: ResizeAttributes): Taps {
  const narrow = r.antialias ? Math.min(factor, 1) : 1;
  const at = ((i + shift) * step) / scale + offset;
  const middle = r.mode === 'linear' && narrow === 1 ? Math.min(Math.max(at, 0), input - 1) : at;
  const reach = (r.mode === 'cubic' ? 2 : 1) / narrow;
  const first = Math.floor(middle - reach) + 1;
  const places = range(Math.ceil(middle + reach) - first, first).filter(
    (place) => !r.excludeOutside || (place >= 0 && place < input),
  );
  const weights = places.map((place) => {
    const d = Math.abs(place - middle) * narrow;
    return r.mode === 'cubic' ? cubic(d, r.cubicA) : Math.max(0, 1 - d);
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return places.map((place, k) => [Math.min(Math.max(place, 0), input - 1), weights[k] / total]);
}

/** Weights [output, input]. */
function matrixOf(axis: Axis, r: ResizeAttributes): number[] {
  const { input, output } = axis;
  const matrix = new Array<number>(input * output).fill(0);
  for (const i of range(output)) for (const [place, weight] of tapsOf(i, axis, r)) matrix[i * input + place] += weight;
  return matrix;
}

const halfPixel = ({ input, output, ...axis }: Axis): Axis => {
  const factor = output / input;
  return { ...axis, input, output, factor, step: 1, scale: factor, shift: 0.5, offset: -0.5 };
};

const alike = (a: readonly number[], b: readonly number[]) => a.every((one, i) => Math.abs(one - b[i]) < 1e-6);

/** Sums along an axis by a matrix [output, input]. */
function summed(f: Formula, x: MlOperand, axis: number, weights: readonly number[], size: number): MlOperand {
  const dims = x.shape;
  const [outer, inner] = [dims.slice(0, axis), dims.slice(axis + 1)];
  const image = f.reshape(x, [sizeOf(outer), dims[axis], sizeOf(inner)]);
  const matrix = f.constant(weights, [1, size, dims[axis]], x.dataType);
  return f.reshape(f.plain('matmul', matrix, image), [...outer, size, ...inner]);
}

function resize({ inputs, attributes, data }: Call): Emit {
  const { dims, dtype } = inputs[0]!;
  const r = readResize(attributes);
  const axes = resizeAxes({ data }, r, dims);
  const changed = axes.flatMap(({ kept }, i) => (kept ? [] : [i]));
  const floats = dtype === DType.float32 || dtype === DType.float16;
  // WebNN's two axes, and true if its elements or weights are the same.
  const pair = [
    [2, 3],
    [1, 2],
  ].find((two) => dims.length === 4 && floats && changed.every((i) => two.includes(i)));
  if (r.mode === 'nearest') {
    const places = changed.map((i) => range(axes[i].output).map((at) => nearestOf(at, axes[i], r)));
    const same = changed.every((i, k) =>
      places[k].every((place, at) => place === Math.floor(((at + 0.5) * axes[i].input) / axes[i].output)),
    );
    if (pair && same) return resampled('nearest-neighbor', pair, axes);
    return (f, [x]) => changed.reduce((y, i, k) => f.picked(y, i, places[k]), x);
  }
  const matrices = changed.map((i) => matrixOf(axes[i], r));
  const plain: ResizeAttributes = { ...r, mode: 'linear', antialias: false };
  if (pair && changed.every((i, k) => alike(matrices[k], matrixOf(halfPixel(axes[i]), plain))))
    return resampled('linear', pair, axes);
  return (f, [x]) => changed.reduce((y, i, k) => summed(f, y, i, matrices[k], axes[i].output), x);
}

const resampled =
  (mode: string, pair: readonly number[], axes: readonly Axis[]): Emit =>
  (f, [x]) =>
    f.apart(f.plain('resample2d', x, { mode, axes: pair, sizes: pair.map((i) => axes[i].output) }));

export default [
  {
    op: 'Resize',
    types: [MOVED],
    requires: [
      {
        attribute: 'coordinate_transformation_mode',
        values: [
          'half_pixel',
          'pytorch_half_pixel',
          'half_pixel_symmetric',
          'asymmetric',
          'align_corners',
          'tf_half_pixel_for_nn',
        ],
        otherwise: 'tf_crop_and_resize',
      },
      {
        attribute: 'mode',
        values: ['nearest'],
        of: ['int32', 'int64', 'int8', 'uint8', 'bool'],
        otherwise: 'integers between integers',
      },
    ],
    emit: resize,
  },
] satisfies MlOperator[];
