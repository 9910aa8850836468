// WGSL of the left operand of a product: the place of a[m, k], for the three kinds of products (see spec.ts). All of it
// is text with these names in scope: z, and after `base`: a_base, b_base, column_base.
import type { LeftKind, ProductSpec } from './spec';

export interface LeftOperand {
  /** Statements after `let z: u32`: declare a_base (units of aVec), b_base and column_base (units of bVec). */
  readonly base: string;
  /** Statements that prepare row `row` (below u.m), names ending in `id`. */
  row(id: number | string, row: string): string;
  /**
   * The loops over taps: the text that opens them and declares `b_row`, the row of b where the tap begins; the text
   * that closes them.
   */
  readonly openTaps: string;
  readonly closeTaps: string;
  /**
   * Statements inside of the tap (ky, kx): declare at_ID, the start of the channels of the row's pixel, and in_ID, true
   * if the pixel exists.
   */
  tap(id: number | string): string;
  /** True if in_ID matters. */
  readonly masked: boolean;
  /**
   * WGSL of a statement that declares, for a k counted in units of `unit` over all taps: ky, kx, channel (in that
   * unit), b_row.
   */
  decode(k: string, unit: string): string;
  /** For windows: the same as variables that begin at a k, and statements that advance them by `by` units. */
  readonly steps?: {
    start(k: string, unit: string): string;
    advance(by: string, unit: string): string;
  };
  /**
   * Statements that declare `placed: bool`, `pixel: u32`, the row of y in memory, and `at: u32`, its start (in units of
   * bVec).
   */
  place(row: string): string;
}

export function leftOperand(spec: Pick<ProductSpec, 'left' | 'batch'>): LeftOperand {
  return TEXTS[spec.left](spec.batch);
}

const TEXTS: { readonly [kind in LeftKind]: (batch: number) => LeftOperand } = { matrix, windows, phases };

function matrix(batch: number): LeftOperand {
  const lines = ['var a_base = u.a_first;', 'var b_base = 0u;', 'var y_base = u.y_first;', 'let column_base = 0u;'];
  if (batch > 0) lines.push('var rest = z;');
  for (let axis = batch - 1; axis >= 0; axis--) {
    const index = `index_${axis}`;
    lines.push(`let ${index} = rest % u.batch_${axis};`, `rest = rest / u.batch_${axis};`);
    lines.push(
      `a_base += ${index} * u.a_batch_${axis};`,
      `b_base += ${index} * u.b_batch_${axis};`,
      `y_base += ${index} * u.y_batch_${axis};`,
    );
  }
  return {
    base: lines.join('\n  '),
    row: (id, row) => `let at_${id} = a_base + (${row}) * u.lda;`,
    openTaps: '{ let b_row = 0u;',
    closeTaps: '}',
    tap: () => '',
    masked: false,
    decode: (k) => `let channel = ${k};`,
    place: (row) => `let placed = ${row} < u.m; let pixel = ${row}; let at = y_base + pixel * u.ldy;`,
  };
}

function windows(): LeftOperand {
  return {
    base: `let a_base = z * u.group_channels + u.a_first;
  let b_base = z * u.group_columns;
  let column_base = z * u.group_columns;`,
    row: (id, row) => `let x_${id} = i32((${row}) % u.out_w * u.stride_w) - i32(u.pad_left);
  let y_${id} = i32((${row}) / u.out_w % u.out_h * u.stride_h) - i32(u.pad_top);
  let image_${id} = (${row}) / (u.out_w * u.out_h) * u.in_h;`,
    openTaps: `for (var ky = 0u; ky < u.kernel_h; ky++) { for (var kx = 0u; kx < u.kernel_w; kx++) {
    let b_row = (ky * u.kernel_w + kx) * u.depth;`,
    closeTaps: '} }',
    tap: (id) => `let iy_${id} = u32(y_${id} + i32(ky * u.dilation_h));
    let ix_${id} = u32(x_${id} + i32(kx * u.dilation_w));
    ${pixel(id)}`,
    masked: true,
    decode: (k, unit) =>
      `let tap = ${k} / ${unit}; let channel = ${k} % ${unit}; let ky = tap / u.kernel_w; let kx = tap % u.kernel_w;`,
    steps: {
      start: (k, unit) =>
        `var channel = (${k}) % ${unit}; var kx = (${k}) / ${unit}; var ky = kx / u.kernel_w; kx = kx % u.kernel_w;`,
      advance: (by, unit) => `channel += ${by};
    while (channel >= ${unit}) { channel -= ${unit}; kx++; if (kx == u.kernel_w) { kx = 0u; ky++; } }`,
    },
    place: (row) => `let placed = ${row} < u.m; let pixel = ${row}; let at = pixel * u.ldy + u.y_first + column_base;`,
  };
}

function phases(): LeftOperand {
  // Of the taps of one axis, those that reach an output pixel are ky = first_y + t * stride, from input row (pixel +
  // pad - ky) / stride.
  return {
    base: `let channel_group = z % u.groups;
  let phase_x = z / u.groups % u.stride_w;
  let phase_y = z / u.groups / u.stride_w;
  let first_x = (phase_x + u.pad_left) % u.stride_w;
  let first_y = (phase_y + u.pad_top) % u.stride_h;
  let taps_x = select(0u, (u.kernel_w - first_x + u.stride_w - 1u) / u.stride_w, first_x < u.kernel_w);
  let taps_y = select(0u, (u.kernel_h - first_y + u.stride_h - 1u) / u.stride_h, first_y < u.kernel_h);
  let a_base = channel_group * u.group_channels + u.a_first;
  let b_base = channel_group * u.group_rows;
  let column_base = channel_group * u.group_columns;`,
    row: (id, row) => `let x_${id} = i32(((${row}) % u.out_w * u.stride_w + phase_x + u.pad_left) / u.stride_w);
  let y_${id} = i32(((${row}) / u.out_w % u.out_h * u.stride_h + phase_y + u.pad_top) / u.stride_h);
  let image_${id} = (${row}) / (u.out_w * u.out_h) * u.in_h;`,
    openTaps: `for (var ky = 0u; ky < taps_y; ky++) { for (var kx = 0u; kx < taps_x; kx++) {
    let b_row = ((first_y + ky * u.stride_h) * u.kernel_w + first_x + kx * u.stride_w) * u.tap_rows;`,
    closeTaps: '} }',
    tap: (id) => `let iy_${id} = u32(y_${id} - i32(ky));
    let ix_${id} = u32(x_${id} - i32(kx));
    ${pixel(id)}`,
    masked: true,
    decode: (k, unit) => `let tap = ${k} / ${unit}; let channel = ${k} % ${unit}; let ky = tap / max(taps_x, 1u);
      let kx = tap % max(taps_x, 1u);
    let b_row = ((first_y + ky * u.stride_h) * u.kernel_w + first_x + kx * u.stride_w) * u.tap_rows;`,
    place: (row) => `let out_x = ${row} % u.out_w * u.stride_w + phase_x;
  let out_y = ${row} / u.out_w % u.out_h * u.stride_h + phase_y;
  let placed = ${row} < u.m && out_x < u.full_w && out_y < u.full_h;
  let pixel = (${row} / (u.out_w * u.out_h) * u.full_h + out_y) * u.full_w + out_x;
  let at = pixel * u.ldy + u.y_first + column_base;`,
  };
}

function pixel(id: number | string): string {
  return `let in_${id} = iy_${id} < u.in_h && ix_${id} < u.in_w;
    let at_${id} = select(0u, a_base + ((image_${id} + iy_${id}) * u.in_w + ix_${id}) * u.lda, in_${id});`;
}
