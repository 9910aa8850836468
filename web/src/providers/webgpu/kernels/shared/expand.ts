// A tensor repeated to a larger shape, for kernels that index it plainly.
import { type Context, KernelError, type Tensor } from '../../../../contract/kernel';
import { broadcastDims, broadcastStrides, sizeOf, stridesOf } from '../../../../contract/shape';
import { stridedCopy } from '../../wgsl/strided_copy';

/** `x` broadcast to `dims` (as in ONNX Expand): a view of it if nothing repeats. */
export function expanded(ctx: Context, x: Tensor, dims: readonly number[]): Tensor {
  if (x.size === sizeOf(dims)) return ctx.reshape(x, dims);
  if (sizeOf(broadcastDims(x.dims, dims)) !== sizeOf(dims))
    throw new KernelError(`a tensor of shape [${x.dims}] where [${dims}] is wanted`);
  const target = ctx.temp(dims, x.dtype);
  stridedCopy(ctx, x, { strides: broadcastStrides(x.dims, dims) }, target, { strides: stridesOf(dims) }, dims);
  return target;
}
