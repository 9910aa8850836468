// Masks of attention, from the shapes that operators allow them.
import type { Tensor } from '../../jsep/kernel';
import { broadcastStrides } from '../../wgsl/shape';
import type { Mask } from './hiding';

/** A mask that broadcasts to `dims` = [batch, heads, queries, keys], but may have fewer keys. */
export function maskOf(tensor: Tensor, dims: readonly number[]): Mask {
  const length = tensor.dims[tensor.dims.length - 1] ?? 1;
  const shorter = length > 1 && length < dims[3];
  const strides = broadcastStrides(tensor.dims, shorter ? [...dims.slice(0, 3), length] : dims);
  return { tensor, strides: [strides[0], strides[1], strides[2], strides[3]], length: shorter ? length : dims[3] };
}
