// A product: y[m, n] = epilogue(alpha * sum over k of a[m, k] * b[k, n] + beta * bias, residual), for each z. Matrix
// products, convolutions and transposed convolutions have this form, with different places of a[m, k].
import type { Spec, StorageType } from '../../../../../contract/kernel';
import type { Instruction } from '../../../wgsl/program';

/**
 * The place of a[m, k], and the meaning of z:
 *   matrix   rows of a matrix; z counts batches
 *   windows  k = (tap, channel), m = (image, y, x): the window of an output pixel; z counts groups
 *   phases   the same for a transposed convolution: z = (phase, group), where a phase is the output pixels whose
 *   windows
 *            have the same taps, so that no tap is wasted
 */
export type LeftKind = 'matrix' | 'windows' | 'phases';

/** Prefixes of the names of products' shaders. */
export const SHADER_NAMES = { matrix: 'gemm', windows: 'conv', phases: 'conv_transpose' } as const;

/** The facts on which the end of a product depends. */
export interface EpilogueSpec {
  /** Columns of b, bias, residual and y in one load. */
  readonly bVec: 1 | 4;
  /** row: one number for each column; any: strides for rows and columns. */
  readonly bias?: 'row' | 'any';
  /**
   * If the residual is not in a tensor like y, at y's place: it is in columns of a tensor of its own, or in other
   * columns of y.
   */
  readonly residualColumns?: 'own' | 'y';
  /**
   * A short text for slow compilers: stores in loops; u.has_bias and u.has_residual say if these two exist (they are
   * bound in any case).
   */
  readonly compact?: boolean;
  /** True if there are alpha and beta. */
  readonly scaled?: boolean;
  /** The steps applied to the sum, including a residual (wgsl/epilogue.ts). */
  readonly epilogue?: readonly Instruction[];
  /** Type of y. */
  readonly storage: StorageType;
  /** True if bytes of y are written, too. */
  readonly words?: boolean;
}

/** A product by tiles of workgroups. */
export interface TiledSpec extends ProductSpec {
  /** Rows and columns of a workgroup's tile of y, and the depth of the tiles of a and b: a multiple of 4. */
  readonly tileRows: number;
  readonly tileColumns: number;
  readonly tileDepth: number;
  /** True if z also counts parts of k, whose sums stay separate in y. */
  readonly split: boolean;
  /** True if b is [n, k], read 4 elements of k at a time. */
  readonly transposed: boolean;
}

/** The name under which a's elements are read. */
export function leftName({ inPlace }: { readonly inPlace?: boolean }): 'a' | 'y' {
  return inPlace ? 'y' : 'a';
}

/** The facts on which the text of a product's shader depends. */
export interface ProductSpec extends Spec, EpilogueSpec {
  readonly left: LeftKind;
  /** a is other columns of y, which must not be bound twice. */
  readonly inPlace?: boolean;
  /** Elements of `a` in one load: 4 if k's innermost extent is a multiple of 4. */
  readonly aVec: 1 | 4;
  /** Batch dimensions with different strides (left: matrix). */
  readonly batch: number;
}

/** A product in the form for software adapters: no barriers, a wide tile in the registers of each thread. */
export interface SoftwareSpec extends ProductSpec {
  readonly rows: number;
  /** In groups of 4 columns. */
  readonly columns: number;
  /** Steps of k that are unrolled. Above 1 with aVec 1 and `tail`, the last ones may exceed k. */
  readonly step: 1 | 2 | 3 | 4;
  readonly tail: boolean;
  /** Neighboring threads have neighboring rows (and share b), or neighboring columns. */
  readonly along: 'rows' | 'columns';
  /** True if threads of a subgroup (of at least 4) load one row of b each and share it. */
  readonly share: boolean;
}

/** A product in the form for GPUs: tiles of a and b in workgroup memory. */
export interface HardwareSpec extends TiledSpec {
  /** Rows, and groups of 4 columns, of one thread. More than one group only without slices. */
  readonly rows: number;
  readonly columns: number;
  /** Tiles of each operand in workgroup memory: with two, one barrier is enough; one tile needs two. */
  readonly buffers: 1 | 2;
  /** Tiles of each operand that are being loaded into registers. */
  readonly ahead: 1 | 2;
  /**
   * Parts of k that threads of one workgroup share, each with its own tiles; their sums are added at the end. A divisor
   * or a multiple of `rows`.
   */
  readonly slices: number;
  /** Steps of 4 in k that are unrolled: a divisor of those of a tile. */
  readonly unrolled: number;
  /** True if b is read where it is multiplied, and has no tiles in workgroup memory. */
  readonly directB: boolean;
  /**
   * Set if a and b are bytes, four of k in a word (bytes.ts); shifted: b has zero points; blocks: each block of k has
   * scales. With blocks a tile is in one block, and there are no slices.
   */
  readonly bytes?: 'plain' | 'shifted' | 'blocks';
}
