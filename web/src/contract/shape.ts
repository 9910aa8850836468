// Shapes, axes and strides on the JavaScript side. Strides count elements.
import { KernelError } from './kernel';

export function sizeOf(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1);
}

/** Strides of a tensor in C order. */
export function stridesOf(dims: readonly number[]): number[] {
  const strides = new Array<number>(dims.length);
  let stride = 1;
  for (let axis = dims.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

/** An axis as a number from 0; negative ones count from the end. */
export function normalizeAxis(axis: number, rank: number): number {
  if (!Number.isInteger(axis) || axis < -rank || axis >= rank) {
    throw new KernelError(`axis ${axis} is outside of [${-rank}, ${rank - 1}]: the tensor has ${rank} axes`);
  }
  return axis < 0 ? axis + rank : axis;
}

/** Axes from 0, in the order given; a repeated one is an error. */
export function normalizeAxes(axes: readonly number[], rank: number): number[] {
  const found = axes.map((axis) => normalizeAxis(axis, rank));
  if (new Set(found).size < found.length) throw new KernelError(`axes [${axes}] name an axis twice`);
  return found;
}

/** The shape that shapes broadcast to, as in numpy. */
export function broadcastDims(...shapes: (readonly number[])[]): number[] {
  const rank = Math.max(0, ...shapes.map((dims) => dims.length));
  return Array.from({ length: rank }, (_, axis) => {
    let result = 1;
    for (const dims of shapes) {
      const dim = dims[axis - rank + dims.length] ?? 1;
      if (dim === 1) continue;
      if (result !== 1 && result !== dim) {
        throw new KernelError(`shapes ${shapes.map((shape) => `[${shape}]`).join(', ')} cannot be broadcast together`);
      }
      result = dim;
    }
    return result;
  });
}

/**
 * Strides of a tensor of shape `dims` when it is walked in the shape `target`: 0 along axes that it repeats. `strides`:
 * its own, if its elements are not in C order.
 */
export function broadcastStrides(
  dims: readonly number[],
  target: readonly number[],
  strides: readonly number[] = stridesOf(dims),
): number[] {
  const missing = target.length - dims.length;
  return target.map((_, axis) => (axis < missing || dims[axis - missing] === 1 ? 0 : strides[axis - missing]));
}

/** Several tensors walked together: the space of indices, and for each tensor its strides in that space. */
export interface Walk {
  readonly dims: readonly number[];
  readonly strides: readonly (readonly number[])[];
}

/** The same walk with the fewest axes: axes of one element are removed, neighbors that step alike are joined. */
export function foldWalk({ dims, strides }: Walk): Walk {
  if (dims.includes(0)) return { dims: [0], strides: strides.map(() => [0]) };
  const folded: number[] = [];
  const steps: number[][] = strides.map(() => []);
  dims.forEach((dim, axis) => {
    if (dim === 1) return;
    const last = folded.length - 1;
    if (last >= 0 && strides.every((stride, k) => steps[k][last] === stride[axis] * dim)) {
      folded[last] *= dim;
      steps.forEach((step, k) => (step[last] = strides[k][axis]));
    } else {
      folded.push(dim);
      steps.forEach((step, k) => step.push(strides[k][axis]));
    }
  });
  return { dims: folded, strides: steps };
}

/**
 * The walk in steps of `lanes` elements along its last axis, or undefined if that is impossible. Tensors whose elements
 * are contiguous there (`wide`) count in groups of `lanes`; those that repeat one element still count single elements.
 * `offsets`: the start of each tensor.
 */
export function wideWalk(
  { dims, strides }: Walk,
  lanes: number,
  offsets: readonly number[] = [],
): { walk: Walk; wide: boolean[] } | undefined {
  const last = dims.length - 1;
  if (last < 0 || dims[last] % lanes !== 0) return undefined;
  const wide = strides.map((stride) => stride[last] === 1);
  const fits = strides.every((stride, k) => {
    if (!wide[k]) return stride[last] === 0;
    return (offsets[k] ?? 0) % lanes === 0 && stride.every((step, axis) => axis === last || step % lanes === 0);
  });
  if (!fits) return undefined;
  return {
    wide,
    walk: {
      dims: dims.map((dim, axis) => (axis === last ? dim / lanes : dim)),
      strides: strides.map((stride, k) =>
        wide[k] ? stride.map((step, axis) => (axis === last ? 1 : step / lanes)) : stride,
      ),
    },
  };
}
