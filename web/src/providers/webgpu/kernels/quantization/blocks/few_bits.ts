// Weights of 2, 4 or 8 bits, in blocks of k with one scale and zero point each: their form in shaders.
import type { StorageType } from '../../../../../contract/kernel';
import { load } from '../../../wgsl/lanes';

export interface Packed {
  readonly bits: number;
  /** Type of scales. */
  readonly storage: StorageType;
  /** Zero points: packed like the weights, floats, or the middle of the range. */
  readonly zeros: 'packed' | 'float' | 'middle';
}

/** WGSL of the scale of a column's block. */
export function scaleOf({ storage }: Packed, column: string, block = 'block'): string {
  return load(storage, 1, `scales[${column} * u.blocks + ${block}]`);
}

/** WGSL of its zero point. */
export function zeroOf({ bits, zeros }: Packed, column: string, block = 'block'): string {
  return {
    middle: `${2 ** (bits - 1)}.0`,
    float: `f32(zeros[${column} * u.blocks + ${block}])`,
    packed: `f32((zeros[${column} * u.zero_bytes + ${block} * ${bits}u / 8u] >> (${block} * ${bits}u % 8u)) & ${
      2 ** bits - 1
    }u)`,
  }[zeros];
}

/**
 * WGSL of the weights of a word, 4 at a time and in order, as floats minus `zero`.
 * @param halves true to use floats of 16 bits, two at a time: fewer instructions if the machine has these.
 */
export function weightsOf(bits: number, word: string, zero: string, halves: boolean): string[] {
  const count = 32 / bits;
  const element = (i: number) => (i < count / 2 ? `h${i}.x` : `h${i - count / 2}.y`);
  const fours = Array.from({ length: count / 4 }, (_, j) => [0, 1, 2, 3].map((t) => 4 * j + t));
  if (halves) return fours.map((four) => `(vec4<f32>(${four.map(element).join(', ')}) - ${zero})`);
  return fours.map((four) => {
    const shifts = four.map((i) => `${i * bits}u`).join(', ');
    return `(vec4<f32>((vec4<u32>(${word}) >> vec4<u32>(${shifts})) & vec4<u32>(${2 ** bits - 1}u)) - ${zero})`;
  });
}

/** Statements before those of `weightsOf` with `halves`: 1024 + weight, exactly. */
export function halvesOf(bits: number, word: string): string {
  const mask = `0x${((2 ** bits - 1) * 0x10001).toString(16)}u`;
  return Array.from(
    { length: 16 / bits },
    (_, i) => `let h${i} = unpack2x16float(((${word} >> ${i * bits}u) & ${mask}) | 0x64006400u);`,
  ).join(' ');
}

/** The number that `halvesOf` adds to each weight. */
export const HALVES_ADD = '1024.0';

/** Statements that add the products of the weights in `bytes`, 4 of them, to `sum`, 4 at a time. */
export function inFours(bits: number): string {
  const each = 8 / bits;
  // The bytes of the weights from 4 * j on, and the shift of each.
  const lanes = (j: number) =>
    [0, 1, 2, 3].map((t) => ({ byte: 'xyzw'[Math.floor((4 * j + t) / each)], shift: ((4 * j + t) % each) * bits }));
  return Array.from({ length: each }, (_, j) => {
    const of = lanes(j);
    const numbers = `(bytes.${of.map(({ byte }) => byte).join('')} >> vec4<u32>(${of
      .map(({ shift }) => `${shift}u`)
      .join(', ')})) & vec4<u32>(${2 ** bits - 1}u)`;
    return `    { let weights = (vec4<f32>(${numbers}) - zero) * scale;
      sum += dot(vec4<f32>(a[row_0 + r * ${each}u + ${j}u]), weights); }`;
  }).join('\n');
}
