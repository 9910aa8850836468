// Products of bytes: four of k are multiplied at a time by dot4I8Packed, in whole numbers, and the sums become floats.
import type { Tensor } from '../../../../../contract/kernel';
import { repeated } from '../../../wgsl/repeated';
import type { HardwareSpec } from './spec';
import { rowOfThread } from './tiles';

/** A byte is a number less 128, and so is that of 0. With blocks it is the number itself, and that of 0 is 0. */
export interface ByteFactors {
  /**
   * Elements of k that have scales of their own: those of rows are float32 [m, k / block], and those of columns [k /
   * block, n]. There is nothing else in these tensors then.
   */
  readonly block?: number;
  /**
   * Of each row the sum of its bytes, the byte of 0, and the bits of its scale: int32 [m, 4]; [1, 4] unless `shifted`.
   */
  readonly rows: Tensor;
  /** Of all columns their sums, then their bytes of 0, then the bits of their scales. int32 [3, n] */
  readonly columns: Tensor;
  /** Whether there are columns whose byte of 0 is not 0: then sums of rows count. Not of windows. */
  readonly shifted: boolean;
}

/** Statements that add what `part_I_C` stand for to `sum_I_C`, where a tile's elements of k begin at `first`. */
export function addBlock({ tileRows, rows, columns }: HardwareSpec, first: string): string {
  const row = (i: number) => `min(group.x * ${tileRows}u + row_0 + ${rowOfThread(i)}u, u.m - 1u)`;
  return `{ let block = ${first} / u.block;
    ${repeated(columns, (c) => `let b_scales_${c} = columns[block * (u.n / 4u) + column_${c}];`)}
    ${repeated(rows, (i) => `let a_scale_${i} = rows[${row(i)} * u.blocks + block];`)}
    ${repeated(rows, (i) =>
      repeated(columns, (c) => `sum_${i}_${c} += vec4<f32>(part_${i}_${c}) * (a_scale_${i} * b_scales_${c});`),
    )} }`;
}

/** WGSL of `real(…)`: sum of (a - a_0) * (b - b_0) = sum of a * b, less three terms; times the scales. */
export function realText({ bytes }: Pick<HardwareSpec, 'bytes'>): string {
  const shift = 'columns[u.n / 4u + column] * (of_row.x - i32(u.total_depth) * of_row.y)';
  return `fn real(sum: vec4<i32>, row: u32, column: u32) -> vec4<f32> {
  let of_row = rows[${bytes === 'shifted' ? 'row' : '0u'}];
  let whole = sum - of_row.y * columns[column]${bytes === 'shifted' ? ` - ${shift}` : ''};
  return vec4<f32>(whole) * (bitcast<f32>(of_row.z) * bitcast<vec4<f32>>(columns[u.n / 2u + column]));
}`;
}

/** What is read of windows where there is no pixel: 0, four times. */
export const PADDING = 'let padding = (u32(rows[0].y) & 0xffu) * 0x01010101u;';

/** A word of a times the words of four columns. */
export function dots(a: string, b: string): string {
  const each = ['x', 'y', 'z', 'w'].map((lane) => `dot4I8Packed(${a}, bitcast<u32>(${b}.${lane}))`);
  return `vec4<i32>(${each.join(', ')})`;
}
