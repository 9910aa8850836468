// A product requested by a kernel.
import type { Tensor, Uniforms } from '../../../../../contract/kernel';
import type { Program } from '../../../wgsl/program';
import type { Columns } from '../../shared/columns';
import type { ByteFactors } from './bytes';
import type { LeftKind } from './spec';

/** A product to compute; strides and sizes in elements. spec.ts describes z. */
export interface Product {
  readonly left: LeftKind;
  readonly a: Tensor;
  readonly b: Tensor;
  readonly y: Tensor;
  readonly m: number;
  readonly n: number;
  /** k of one tap, and the (largest) number of taps. */
  readonly depth: number;
  readonly taps: number;
  readonly z: number;
  /** From one row (for a: one pixel) to the next. */
  readonly lda: number;
  readonly ldb: number;
  readonly ldy: number;
  /** Strides that are uniforms of this kind of product, in elements of a, of b (and bias and y), and plain numbers. */
  readonly strides?: { readonly a?: Uniforms; readonly b?: Uniforms; readonly plain?: Uniforms };
  readonly batch?: number;
  /** True if b is [n, k] (see readsTransposed); ldb and b_batch then describe this form. */
  readonly transposed?: boolean;
  readonly bias?: Tensor;
  /** Strides of bias over rows and columns, unless it has one number for each column of y. */
  readonly biasStrides?: readonly [number, number];
  readonly residual?: Tensor;
  /** The first columns to use of a's and y's rows (0). */
  readonly aFirst?: number;
  readonly yFirst?: number;
  /**
   * The place of the residual, unless it is in its tensor where y is in its own; for a residual in y's own tensor it
   * must be the same.
   */
  readonly residualColumns?: Columns;
  readonly epilogue?: Program;
  /** The bytes of the epilogue's last rounding (shared/byte_words.ts); only if columns come in fours. */
  readonly words?: Tensor;
  /** True if elements of a and b may be rounded to float16 before they are multiplied. */
  readonly halves?: boolean;
  /** The meaning of bytes, if a and b are words of them; sizes and strides still count elements. */
  readonly bytes?: ByteFactors;
  /** The parts of k (partsOf) whose sums are in y, if there are several: [parts, m, n]. The product then has no end. */
  readonly parts?: number;
  readonly alpha?: number;
  readonly beta?: number;
  /** For windows: each channel is a group, and z is 1 (see own_element.ts). */
  readonly each?: boolean;
}
