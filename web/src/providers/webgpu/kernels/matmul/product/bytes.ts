// Products of bytes: dot4I8Packed multiplies four elements of k at a time, in whole numbers, and the sums become
// floats.
import type { Tensor } from '../../../../../contract/kernel';
import { repeated } from '../../../wgsl/repeated';
import type { HardwareSpec } from './spec';
import { rowOfThread } from './tiles';

/**
 * The zero point and the number are stored as a byte minus 128. With blocks the number itself is stored, with zero
 * point 0.
 */
export interface ByteFactors {
  /**
   * Elements of k that share scales: those of rows are float32 [m, k / block], and those of columns [k / block, n].
   * These tensors then have only scales.
   */
  readonly block?: number;
  /**
   * For each row the sum of its bytes, its zero point, and the bits of its scale: int32 [m, 4]; [1, 4] unless
   * `shifted`.
   */
  readonly rows: Tensor;
  /** For all columns their sums, then their zero points, then the bits of their scales. int32 [3, n] */
  readonly columns: Tensor;
  /** True if any column has a zero point other than 0: then sums of rows are needed. Not for windows. */
  readonly shifted: boolean;
}

/** Statements that add the values of `part_I_C` to `sum_I_C`, for a tile whose elements of k begin at `first`. */
export function addBlock({ tileRows, rows, columns }: HardwareSpec, first: string): string {
  const row = (i: number) => `min(group.x * ${tileRows}u + row_0 + ${rowOfThread(i)}u, u.m - 1u)`;
  return `{ let block = ${first} / u.block;
    ${repeated(columns, (c) => `let b_scales_${c} = columns[block * (u.n / 4u) + column_${c}];`)}
    ${repeated(rows, (i) => `let a_scale_${i} = rows[${row(i)} * u.blocks + block];`)}
    ${repeated(rows, (i) =>
      repeated(columns, (c) => `sum_${i}_${c} += vec4<f32>(part_${i}_${c}) * (a_scale_${i} * b_scales_${c});`),
    )} }`;
}

/** WGSL of `real(…)`: sum of (a - a_0) * (b - b_0) = sum of a * b, minus three terms; times the scales. */
export function realText({ bytes }: Pick<HardwareSpec, 'bytes'>): string {
  const shift = 'columns[u.n / 4u + column] * (of_row.x - i32(u.total_depth) * of_row.y)';
  return `fn real(sum: vec4<i32>, row: u32, column: u32) -> vec4<f32> {
  let of_row = rows[${bytes === 'shifted' ? 'row' : '0u'}];
  let whole = sum - of_row.y * columns[column]${bytes === 'shifted' ? ` - ${shift}` : ''};
  return vec4<f32>(whole) * (bitcast<f32>(of_row.z) * bitcast<vec4<f32>>(columns[u.n / 2u + column]));
}`;
}

/** The word read from a window where there is no pixel: 0, four times. */
export const PADDING = 'let padding = (u32(rows[0].y) & 0xffu) * 0x01010101u;';

/** A word of a times the words of four columns. */
export function dots(a: string, b: string): string {
  const each = ['x', 'y', 'z', 'w'].map((lane) => `dot4I8Packed(${a}, bitcast<u32>(${b}.${lane}))`);
  return `vec4<i32>(${each.join(', ')})`;
}
