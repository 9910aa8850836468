// What operators put into a graph, without casts at each place.
import { normalizeAxis, sizeOf } from '../../../../contract/shape';
import type { MlBuilder, MlDataType, MlOperand } from '../../ml';

/** Of operators with one result. */
export function put(builder: MlBuilder, method: string, ...args: readonly unknown[]): MlOperand {
  return builder[method](...(args as never[])) as MlOperand;
}

export const reshaped = (builder: MlBuilder, x: MlOperand, shape: readonly number[]): MlOperand =>
  `${x.shape}` === `${shape}` && x.shape.length === shape.length ? x : put(builder, 'reshape', x, shape);

export const cast = (builder: MlBuilder, x: MlOperand, dataType: MlDataType): MlOperand =>
  x.dataType === dataType ? x : put(builder, 'cast', x, dataType);

/** A constant of int32, or of float32 or float16. */
export function constant(
  builder: MlBuilder,
  values: readonly number[],
  shape: readonly number[] = [values.length],
  dataType: MlDataType = 'int32',
): MlOperand {
  const whole = dataType === 'int32';
  const { buffer } = whole ? Int32Array.from(values) : Float32Array.from(values);
  const made = builder.constant({ dataType: whole ? 'int32' : 'float32', shape }, new Uint8Array(buffer));
  return cast(builder, made, dataType);
}

/** Slices of an axis by their places, which a kernel knows. */
export const picked = (builder: MlBuilder, x: MlOperand, axis: number, places: readonly number[]): MlOperand =>
  put(builder, 'gather', x, constant(builder, places), { axis });

/** Part of an axis, with a step. */
export function part(builder: MlBuilder, x: MlOperand, axis: number, start: number, size: number, step = 1): MlOperand {
  if (start === 0 && size === x.shape[axis] && step === 1) return x;
  const at = (one: number, other: (dim: number) => number) => x.shape.map((dim, i) => (i === axis ? one : other(dim)));
  return put(
    builder,
    'slice',
    x,
    at(start, () => 0),
    at(size, (dim) => dim),
    { strides: at(step, () => 1) },
  );
}

/** With `value` before and after along some axes. */
export function padded(
  builder: MlBuilder,
  x: MlOperand,
  before: readonly number[],
  after: readonly number[],
  value = 0,
): MlOperand {
  if ([...before, ...after].every((count) => count === 0)) return x;
  return put(builder, 'pad', x, before, after, { mode: 'constant', value });
}

/** Two axes, as [0, `axis`), [`axis`, rank). */
export function matrix(dims: readonly number[], axis: number): [number, number] {
  return [sizeOf(dims.slice(0, axis)), sizeOf(dims.slice(axis))];
}

export const axisOf = (axis: number, dims: readonly number[]): number => normalizeAxis(axis, dims.length);
