// Tensors that mask scores, in the shapes that operators allow.
import { KernelError, type Tensor } from '../../../../contract/kernel';
import { broadcastStrides } from '../../../../contract/shape';

/**
 * A mask to broadcast to [batch, heads, queries, keys]. A mask of bools or integers masks a key out where it is 0; a
 * mask of floats is added. With `ranges` it has, for each batch, the end of the valid keys, and from that element on
 * their start (0: at the first).
 */
export interface Mask {
  readonly tensor: Tensor;
  readonly strides: readonly [number, number, number, number];
  /** Keys from here on are masked out. */
  readonly length: number;
  readonly ranges?: number;
}

/**
 * A mask that broadcasts to `dims` = [batch, heads, queries, keys].
 * @param pads true if it may have fewer keys instead: those after them are hidden
 */
export function maskOf(tensor: Tensor, dims: readonly number[], pads: boolean): Mask {
  const length = tensor.dims[tensor.dims.length - 1] ?? 1;
  const shorter = pads && length < dims[3];
  const fits = tensor.dims.every((size, axis) => {
    const wanted = dims[axis - tensor.dims.length + dims.length];
    return size === wanted || size === 1 || (axis === tensor.dims.length - 1 && shorter);
  });
  if (!fits) throw new KernelError(`an attention mask of shape [${tensor.dims}] does not broadcast to [${dims}]`);
  const strides = broadcastStrides(tensor.dims, shorter ? [...dims.slice(0, 3), length] : dims);
  return { tensor, strides: [strides[0], strides[1], strides[2], strides[3]], length: shorter ? length : dims[3] };
}

/**
 * A mask of integers: the ends of each batch's keys, [batch] or [3 batch + 2] with them in front, or [2 batch] followed
 * by their starts; [batch, keys]; or [batch, queries, keys]. [batch, 1] or [1, 1] means no mask.
 */
export function maskOfKeys(mask: Tensor | undefined, [batch, , queries, keys]: readonly number[]): Mask[] {
  if (!mask) return [];
  const [rank, size] = [mask.dims.length, mask.size];
  if (rank === 1 && (size === batch || size === 2 * batch || size === 3 * batch + 2)) {
    return [{ tensor: mask, strides: [0, 0, 0, 0], length: keys, ranges: size === 2 * batch ? batch : 0 }];
  }
  if (rank === 2 && mask.dims[1] === 1 && keys !== 1) return [];
  if (rank === 2 && size === batch * keys) return [{ tensor: mask, strides: [keys, 0, 0, 1], length: keys }];
  if (rank === 3 && size === batch * queries * keys)
    return [{ tensor: mask, strides: [queries * keys, 0, keys, 1], length: keys }];
  throw new KernelError(
    `attention of ${queries} queries over ${keys} keys, ${batch} times, with a mask of shape [${mask.dims}]`,
    true,
  );
}
