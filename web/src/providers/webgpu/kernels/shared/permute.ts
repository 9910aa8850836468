// Transposes inside of kernels: a convolution or a pool with channels second runs between two of them.
import type { Context, Tensor } from '../../../../contract/kernel';
import { permute } from '../../wgsl/strided_copy';

/** A scratch tensor that is `x` with its axes in another order (as in ONNX Transpose). */
export function permuted(ctx: Context, x: Tensor, perm: readonly number[]): Tensor {
  const dims = perm.map((axis) => x.dims[axis]);
  // Axes of one element do not matter: often there is nothing to move.
  const moved = perm.filter((axis) => x.dims[axis] > 1);
  if (moved.every((axis, i) => i === 0 || axis > moved[i - 1])) return ctx.reshape(x, dims);
  const target = ctx.temp(dims, x.dtype);
  permuteInto(ctx, x, perm, target);
  return target;
}

/** Writes `x` with its axes in another order into `target`. */
export function permuteInto(ctx: Context, x: Tensor, perm: readonly number[], target: Tensor): void {
  permute(ctx, x, x.dims, perm, target);
}

/** [0, 2, 3, …, 1]: channels last. */
export function channelsLast(rank: number): number[] {
  return [0, ...Array.from({ length: rank - 2 }, (_, i) => i + 2), 1];
}

/** [0, rank - 1, 1, 2, …]: channels second. */
export function channelsSecond(rank: number): number[] {
  return [0, rank - 1, ...Array.from({ length: rank - 2 }, (_, i) => i + 1)];
}
