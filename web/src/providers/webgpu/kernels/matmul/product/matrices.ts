// Products of stacks of matrices whose leading axes broadcast, as in numpy's matmul.
import { type Context, KernelError, type Tensor } from '../../../../../contract/kernel';
import type { Program } from '../../../wgsl/program';
import { broadcastDims, broadcastStrides, foldWalk, stridesOf } from '../../../../../contract/shape';
import { DType } from '../../../../../schema';
import { multiply, partsOf } from './multiply';

export interface MatrixShapes {
  /** Sizes of the operands, viewed as [...batch, m, k] and [...batch, k, n]. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: readonly number[];
  readonly aDims: readonly number[];
  readonly bDims: readonly number[];
  /** Dims of the result, without the axes that operands of one axis lack. */
  readonly output: readonly number[];
}

export function matrixShapes(a: readonly number[], b: readonly number[]): MatrixShapes {
  if (a.length === 0 || b.length === 0)
    throw new KernelError('operands of a matrix product must have at least one axis');
  const aDims = a.length === 1 ? [1, ...a] : a;
  const bDims = b.length === 1 ? [...b, 1] : b;
  const [m, k] = aDims.slice(-2);
  const [rows, n] = bDims.slice(-2);
  if (k !== rows) throw new KernelError(`a matrix product of [${a}] and [${b}]: ${k} columns do not fit ${rows} rows`);
  const batch = broadcastDims(aDims.slice(0, -2), bDims.slice(0, -2));
  return {
    m,
    n,
    k,
    batch,
    aDims,
    bDims,
    output: [...batch, ...(a.length === 1 ? [] : [m]), ...(b.length === 1 ? [] : [n])],
  };
}

/** The leading axes, folded to as few as their strides allow. Strides in matrices. */
export function foldBatch({ batch, aDims, bDims }: MatrixShapes) {
  const strides = [broadcastStrides(aDims.slice(0, -2), batch), broadcastStrides(bDims.slice(0, -2), batch)];
  const {
    dims,
    strides: [a, b],
  } = foldWalk({ dims: batch, strides });
  return { dims, a, b };
}

/** Matrices in memory: [...batch, rows, columns], and the strides of these axes in elements. */
export interface Stack {
  readonly tensor: Tensor;
  readonly dims: readonly number[];
  readonly strides: readonly number[];
}

export function stackOf(tensor: Tensor, dims = tensor.dims): Stack {
  return { tensor, dims, strides: stridesOf(dims) };
}

export interface MatricesEnd {
  readonly alpha?: number;
  readonly epilogue?: Program;
  /** One number for each column. */
  readonly bias?: Tensor;
  /** Of y's shape. */
  readonly residual?: Tensor;
  readonly words?: Tensor;
  /** b's matrices are [n, k] in memory (see readsTransposed). */
  readonly transposed?: boolean;
}

/** y = epilogue(alpha * a @ b + bias, residual). Elements of rows of a, b (or of its columns) and y are contiguous. */
export function multiplyMatrices(
  ctx: Context,
  a: Stack,
  b: Stack,
  y: Stack,
  { m, n, k, batch }: MatrixShapes,
  { bias, residual, transposed = false, ...end }: MatricesEnd = {},
): void {
  if (y.tensor.size === 0) return;
  if (bias && bias.size !== n) throw new KernelError(`a product of ${n} columns with a bias of shape [${bias.dims}]`);
  const repeated = ({ dims, strides }: Stack) => broadcastStrides(dims.slice(0, -2), batch, strides);
  const folded = foldWalk({ dims: batch, strides: [a, b, y].map(repeated) });
  const [a_batch, b_batch, y_batch] = folded.strides;
  const row = ({ strides }: Stack) => strides[strides.length - 2];
  const [lda, ldy] = [row(a), row(y)];
  const common = {
    ...{ left: 'matrix' as const, a: a.tensor, b: b.tensor, y: y.tensor, n, depth: k, taps: 1, lda, ldy },
    ...{ ldb: transposed ? b.strides[b.strides.length - 1] : row(b), bias, residual, transposed, ...end },
  };
  const z = folded.dims.reduce((product, dim) => product * dim, 1);
  // With one matrix on the right, the left ones are one tall matrix.
  const follow = (step = 0, ld: number) => z === 1 || step === m * ld;
  if (folded.dims.length <= 1 && !b_batch[0] && follow(a_batch[0], lda) && follow(y_batch[0], ldy)) {
    multiply(ctx, { ...common, m: m * z, z: 1 });
    return;
  }
  multiply(ctx, {
    ...common,
    m,
    z,
    batch: folded.dims.length,
    strides: { plain: { batch: folded.dims }, a: { a_batch }, b: { b_batch, y_batch } },
  });
}

/** Output 0: the sums of the parts of k, as many as are worth it, float32 [parts, ...]. b is one matrix. */
export function multiplyInParts(ctx: Context, a: Tensor, b: Tensor, shapes: MatrixShapes, transposed: boolean): void {
  const { k, n, output, bDims } = shapes;
  if (bDims.length !== 2) throw new KernelError(`parts of a product with matrices of shape [${b.dims}]`);
  const m = output.slice(0, -1).reduce((product, dim) => product * dim, 1);
  const ldb = transposed ? k : n;
  const product = { left: 'matrix', a, b, m, n, depth: k, taps: 1, z: 1, lda: k, ldb, ldy: n, transposed } as const;
  const parts = m * n === 0 ? 1 : partsOf(ctx, product);
  multiply(ctx, { ...product, y: ctx.output(0, [parts, ...output], DType.float32), parts });
}

/**
 * WGSL of a thread for each element of y: its `row` and `column`, and their starts in a and b (`at_a`, `at_b`), from
 * uniforms by foldBatch.
 */
export function operandOffsets(batch: number): string {
  const axes = Array.from({ length: batch }, (_, i) => batch - 1 - i);
  return `let column = i % u.n;
  let row = i / u.n % u.m;
  var rest = i / u.n / u.m;
  var at_a = row * u.k;
  var at_b = column;
  ${axes
    .map(
      (axis) => `let index_${axis} = rest % u.batch_${axis}; rest = rest / u.batch_${axis};
  at_a += index_${axis} * u.a_batch_${axis}; at_b += index_${axis} * u.b_batch_${axis};`,
    )
    .join('\n  ')}`;
}
