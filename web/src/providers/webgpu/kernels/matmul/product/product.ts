// A product that kernels ask for.
import type { Tensor, Uniforms } from '../../../../../contract/kernel';
import type { Program } from '../../../wgsl/program';
import type { Columns } from '../../shared/columns';
import type { ByteFactors } from './bytes';
import type { LeftKind } from './spec';

/** A product to compute; strides and sizes in elements. See spec.ts for what z counts. */
export interface Product {
  readonly left: LeftKind;
  readonly a: Tensor;
  readonly b: Tensor;
  readonly y: Tensor;
  readonly m: number;
  readonly n: number;
  /** k of one tap, and the (greatest) number of taps. */
  readonly depth: number;
  readonly taps: number;
  readonly z: number;
  /** From one row (of a: one pixel) to the next. */
  readonly lda: number;
  readonly ldb: number;
  readonly ldy: number;
  /** Strides that are uniforms of this kind of product, in elements of a, of b (and bias and y), and plain numbers. */
  readonly strides?: { readonly a?: Uniforms; readonly b?: Uniforms; readonly plain?: Uniforms };
  readonly batch?: number;
  /** Whether b is [n, k] (see readsTransposed); ldb and b_batch are then of that. */
  readonly transposed?: boolean;
  readonly bias?: Tensor;
  /** Strides of bias over rows and columns, unless it has one number for each column of y. */
  readonly biasStrides?: readonly [number, number];
  readonly residual?: Tensor;
  /** The first columns of a's and y's rows that are meant (0). */
  readonly aFirst?: number;
  readonly yFirst?: number;
  /**
   * Where the residual is, unless it lies in its tensor as y does in its own; one that is in y's own tensor must be.
   */
  readonly residualColumns?: Columns;
  readonly epilogue?: Program;
  /** What the epilogue rounded at last as bytes besides (shared/byte_words.ts); of columns in fours only. */
  readonly words?: Tensor;
  /** Whether elements of a and b may be rounded to float16 before they are multiplied. */
  readonly halves?: boolean;
  /** What bytes stand for, where a and b are words of them; sizes and strides are of elements nevertheless. */
  readonly bytes?: ByteFactors;
  /** Parts of k (partsOf) whose sums y has, where there are several: [parts, m, n]. Then nothing ends the product. */
  readonly parts?: number;
  readonly alpha?: number;
  readonly beta?: number;
  /** Of windows: each channel is a group of its own, and z is 1 (see own_element.ts). */
  readonly each?: boolean;
}
