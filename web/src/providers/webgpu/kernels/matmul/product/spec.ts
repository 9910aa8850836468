// A product: y[m, n] = epilogue(alpha * sum over k of a[m, k] * b[k, n] + beta * bias, residual), for each z.
// Matrix products, convolutions and transposed convolutions are all of them, with different ways to find a[m, k].
import type { Spec, StorageType } from '../../../../../contract/kernel';
import type { Instruction } from '../../../wgsl/program';

/**
 * Where a[m, k] is, and what z counts:
 *   matrix   rows of a matrix; z counts batches
 *   windows  k = (tap, channel), m = (image, y, x): the window of an output pixel; z counts groups
 *   phases   the same for a transposed convolution: z = (phase, group), where a phase is the output pixels whose
 *   windows
 *            have the same taps, so that no tap is wasted
 */
export type LeftKind = 'matrix' | 'windows' | 'phases';

/** How the names of products' shaders begin. */
export const SHADER_NAMES = { matrix: 'gemm', windows: 'conv', phases: 'conv_transpose' } as const;

/** What the end of a product depends on. */
export interface EpilogueSpec {
  /** Columns of b, bias, residual and y in one load. */
  readonly bVec: 1 | 4;
  /** row: one number for each column; any: strides for rows and columns. */
  readonly bias?: 'row' | 'any';
  /**
   * Where the residual is not where y is, in a tensor like y: in columns of a tensor of its own, or in other columns of
   * y.
   */
  readonly residualColumns?: 'own' | 'y';
  /**
   * A short text for slow compilers: stores in loops; u.has_bias and u.has_residual say if these two are there (bound
   * they are).
   */
  readonly compact?: boolean;
  /** Whether there are alpha and beta. */
  readonly scaled?: boolean;
  /** What is done to the sum, also with a residual (wgsl/epilogue.ts). */
  readonly epilogue?: readonly Instruction[];
  /** Of y. */
  readonly storage: StorageType;
  /** Whether bytes of y are written, too. */
  readonly words?: boolean;
}

/** Of a product by tiles of workgroups. */
export interface TiledSpec extends ProductSpec {
  /** Rows and columns of a workgroup's tile of y, and the depth of the tiles of a and b: a multiple of 4. */
  readonly tileRows: number;
  readonly tileColumns: number;
  readonly tileDepth: number;
  /** Whether z also counts parts of k, whose sums are left in y as they are. */
  readonly split: boolean;
  /** Whether b is [n, k], read 4 elements of k at a time. */
  readonly transposed: boolean;
}

/** By which name a's elements are read. */
export function leftName({ inPlace }: { readonly inPlace?: boolean }): 'a' | 'y' {
  return inPlace ? 'y' : 'a';
}

/** What the text of a product's shader depends on. */
export interface ProductSpec extends Spec, EpilogueSpec {
  readonly left: LeftKind;
  /** a is other columns of y, which must not be bound twice. */
  readonly inPlace?: boolean;
  /** Elements of `a` in one load: 4 where k's innermost extent is a multiple of 4. */
  readonly aVec: 1 | 4;
  /** Batch dimensions that strides tell apart (left: matrix). */
  readonly batch: number;
}

/** A product as software adapters like it: no barriers, a wide tile in the registers of each thread. */
export interface SoftwareSpec extends ProductSpec {
  readonly rows: number;
  /** In groups of 4 columns. */
  readonly columns: number;
  /** Steps of k that are unrolled. Above 1 with aVec 1 and `tail`, the last ones may lie beyond k. */
  readonly step: 1 | 2 | 3 | 4;
  readonly tail: boolean;
  /** Neighboring threads have neighboring rows (and share b), or neighboring columns. */
  readonly along: 'rows' | 'columns';
  /** Whether threads of a subgroup (of at least 4) load one row of b each and hand it round. */
  readonly share: boolean;
}

/** A product as GPUs like it: tiles of a and b in workgroup memory. */
export interface HardwareSpec extends TiledSpec {
  /** Rows, and groups of 4 columns, of one thread. More than one group only without slices. */
  readonly rows: number;
  readonly columns: number;
  /** Tiles of each operand in workgroup memory: with two, one barrier is enough where one tile wants two. */
  readonly buffers: 1 | 2;
  /** Tiles of each operand that are on their way into registers. */
  readonly ahead: 1 | 2;
  /**
   * Parts of k that threads of one workgroup share, each with tiles of its own; their sums are added at the end. A
   * divisor or a multiple of `rows`.
   */
  readonly slices: number;
  /** Steps of 4 in k that are written out: a divisor of those of a tile. */
  readonly unrolled: number;
  /** Whether b is read where it is multiplied, and has no tiles in workgroup memory. */
  readonly directB: boolean;
  /**
   * Whether a and b are of bytes, four of k in a word (bytes.ts); shifted: b's have zero points; blocks: with scales
   * for each block of k. A tile is of one block, and there are no slices then.
   */
  readonly bytes?: 'plain' | 'shifted' | 'blocks';
}
