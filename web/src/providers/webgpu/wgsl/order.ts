// A total order of elements.
import type { ComputeType } from './lanes';

const KEYS = {
  f32: `let all = bitcast<u32>(v);
  let bits = select(all, 0u, (all & 0x7fffffffu) == 0u);
  let key = select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
  return select(key, 0xffffffffu, (all & 0x7fffffffu) > 0x7f800000u);`,
  i32: 'return bitcast<u32>(v) ^ 0x80000000u;',
  u32: 'return v;',
} as const;

/** WGSL of key(v), a number with the order of the elements: a NaN is above infinity, and -0 is 0. */
export function orderKey(type: ComputeType): string {
  return `fn key(v: ${type}) -> u32 {
  ${KEYS[type]}
}
`;
}
