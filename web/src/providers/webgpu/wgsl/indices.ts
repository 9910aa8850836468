// Indices in tensors.
import type { DTypeName } from '../../../contract/kernel';

export const INDICES = ['int64', 'int32'] as const satisfies readonly DTypeName[];

/**
 * index_within: an index as an element's number. Negative ones count from the end; indices outside become the nearest
 * one inside. is_outside: true for such an index, for a shader that writes.
 */
export const INDEX_WGSL = `fn index_within(index: i32, dim: u32) -> u32 {
  let n = i32(dim);
  return u32(clamp(select(index, index + n, index < 0), 0, n - 1));
}
fn is_outside(index: i32, dim: u32) -> bool {
  return index < -i32(dim) || index >= i32(dim);
}
`;
