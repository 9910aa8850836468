// The parameters of attention: places of heads in memory, masking, sizes.
import type { Tensor } from '../../../../contract/kernel';
import type { Masking } from './masking';

/** Vectors of [batch, head, position] in a tensor; the elements of a vector are neighbors. */
export interface Heads {
  readonly tensor: Tensor;
  readonly offset?: number;
  /** Of batch, head, position. */
  readonly strides: readonly [number, number, number];
}

export interface Attention {
  readonly batch: number;
  readonly heads: number;
  /** A divisor of `heads`: neighboring heads share keys and values. */
  readonly kvHeads: number;
  readonly queries: number;
  readonly keys: number;
  readonly size: number;
  readonly valueSize: number;
  readonly q: Heads;
  readonly k: Heads;
  readonly v: Heads;
  readonly y: Heads;
  readonly scale: number;
  readonly masking: Masking;
  /** Requested scores: 0 raw, 1 after softcap, 2 after masks, 3 after softmax. */
  readonly debug?: { readonly mode: number; readonly tensor: Tensor };
}

/** Heads in a tensor [batch, heads, positions, size]. */
export function headsOf(tensor: Tensor): Heads {
  const [, heads, positions, size] = tensor.dims;
  return { tensor, strides: [heads * positions * size, positions * size, size] };
}

/** Heads in a tensor [batch, positions, width]: columns from `offset` on, `size` of them each. */
export function headsWithin(tensor: Tensor, size: number, offset = 0): Heads {
  const [, positions, width] = tensor.dims;
  return { tensor, offset, strides: [positions * width, size, width] };
}
