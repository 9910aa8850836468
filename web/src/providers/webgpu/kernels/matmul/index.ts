// MatMul (Python's passes add a bias as third and a residual as fourth input), and com.microsoft's FusedMatMul
// (transposes and a factor). Passes turn transposes around both into `a_perm`, `b_perm` and `y_perm`: operands and
// results that can be read or written in place are not moved.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Tensor,
} from '../../../../contract/kernel';
import { readEpilogue, residualOf } from '../../wgsl/epilogue';
import type { Program } from '../../wgsl/program';
import { bindsWhole } from '../../wgsl/large';
import { foldWalk, stridesOf } from '../../../../contract/shape';
import { wordsOf } from '../shared/byte_words';
import { permuted, permuteInto } from '../shared/permute';
import { matrixShapes, multiplyInParts, multiplyMatrices, type Stack, stackOf } from './product/matrices';
import { readsTransposed } from './product/multiply';
import { multiplyIntegers } from './integers';
import { Dialect, Place } from '../../../../schema/dialect';

interface MatMulAttributes {
  readonly epilogue?: Program;
  readonly alpha: number;
  /** For each operand: true to swap its last two axes, and true to move its first axis to just before the last. */
  readonly swap: readonly [boolean, boolean];
  readonly rotate: readonly [boolean, boolean];
  /** The transposes of the operands before the product, and of the result at the end. */
  readonly perms: readonly (readonly number[] | undefined)[];
  /** True if the reader adds up the sums of parts of k. */
  readonly parts: boolean;
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const INTEGERS: readonly DTypeName[] = ['int32', 'uint32', 'int64', 'uint64'];

function attributes(a: Attributes): MatMulAttributes {
  const flag = (name: string) => a.integer(name, 0) !== 0;
  const perm = (name: string) => (a.has(name) ? a.integers(name) : undefined);
  return {
    epilogue: readEpilogue(a),
    alpha: a.number('alpha', 1),
    swap: [flag('transA'), flag('transB')],
    rotate: [flag('transBatchA'), flag('transBatchB')],
    perms: [Dialect.A_PERM, Dialect.B_PERM, Dialect.Y_PERM].map(perm),
    parts: flag(Dialect.Y_PARTS),
  };
}

/** The axes of an operand, read as [...batch, rows, columns]. */
function axesOf(x: Tensor, swap: boolean, rotate: boolean, given?: readonly number[]): readonly number[] {
  let perm = given ?? x.dims.map((_, axis) => axis);
  const last = perm.length - 1;
  if (last < 1) return perm;
  if (rotate) perm = [...perm.slice(1, -1), perm[0], perm[last]];
  return swap ? [...perm.slice(0, -2), perm[last], perm[last - 1]] : perm;
}

/**
 * x with axes in this order, moved unless `reads` accepts their strides. A vector is a row, or on the right a column.
 */
function operand(
  ctx: Context,
  x: Tensor,
  axes: readonly number[],
  reads: (strides: readonly number[]) => boolean,
  column = false,
): Stack {
  const strides = stridesOf(x.dims);
  const stack = { tensor: x, dims: axes.map((axis) => x.dims[axis]), strides: axes.map((axis) => strides[axis]) };
  if (axes.length < 2) return stackOf(x, column ? [...x.dims, 1] : [1, ...x.dims]);
  return bindsWhole(x, ctx.device) && reads(stack.strides) ? stack : stackOf(permuted(ctx, x, axes));
}

/** With fewer rows of a matrix, partial tiles and reading the other matrix cost more than moving them. */
const SHORT = 256;

function resolve(ctx: Context, { epilogue, alpha, swap, rotate, perms, parts }: MatMulAttributes): void {
  const [left, right] = [0, 1].map((i) => ctx.input(i));
  const [aAxes, bAxes] = [left, right].map((x, i) => axesOf(x, swap[i], rotate[i], perms[i]));
  const [aDims, bDims] = [aAxes.map((axis) => left.dims[axis]), bAxes.map((axis) => right.dims[axis])];
  const shapes = matrixShapes(aDims, bDims);
  const { m, n, k, batch } = shapes;
  // Rows of many small matrices, multiplied by one matrix, form one tall matrix, so that the one matrix is read once.
  const short = m < SHORT && bDims.slice(0, -2).every((dim) => dim === 1);
  const fits = (dims: readonly number[], strides: readonly number[]) =>
    !short || foldWalk({ dims: dims.slice(0, -1), strides: [strides] }).dims.length < 2;
  const byRows = (strides: readonly number[]) => strides[strides.length - 1] === 1;
  const byColumns = (strides: readonly number[]) => strides[strides.length - 2] === 1 && readsTransposed(ctx, m, k);
  const a = operand(ctx, left, aAxes, (strides) => byRows(strides) && fits(aDims, strides));
  const b = operand(ctx, right, bAxes, (strides) => byRows(strides) || byColumns(strides), true);
  const transposed = !byRows(b.strides);
  if (parts) {
    multiplyInParts(ctx, a.tensor, b.tensor, shapes, transposed);
    return;
  }
  const perm = perms[2];
  const result = ctx.output(0, perm?.map((axis) => shapes.output[axis]) ?? shapes.output);
  const dims = [...batch, m, n];
  const steps = stridesOf(result.dims);
  const placed = perm && dims.map((_, axis) => steps[perm.indexOf(axis)]);
  const places = placed && bindsWhole(result, ctx.device) && byRows(placed) && fits(dims, placed);
  const y = perm && !places ? ctx.temp(shapes.output, result.dtype) : result;
  const residual = residualOf(ctx, epilogue, y.dims);
  if (y.storage === 'i32' || y.storage === 'u32') {
    if (epilogue || alpha !== 1 || ctx.inputs[Place.PRODUCT_BIAS])
      throw new KernelError('an integer MatMul with an epilogue, a factor or a bias', true);
    multiplyIntegers(ctx, a.tensor, b.tensor, y, shapes);
    return;
  }
  const strides = places ? placed : stridesOf(dims);
  const whole = ctx.inputs.every((x) => !x || bindsWhole(x, ctx.device));
  const words = wordsOf(ctx, result, y === result && whole && n % 4 === 0);
  const end = { words, alpha, epilogue, bias: ctx.inputs[Place.PRODUCT_BIAS], residual, transposed };
  multiplyMatrices(ctx, a, b, { tensor: y, dims, strides }, shapes, end);
  if (y !== result) permuteInto(ctx, y, perm!, result);
}

export default [
  {
    op: 'MatMul',
    types: [[...FLOATS, ...INTEGERS], [...FLOATS, ...INTEGERS], FLOATS, FLOATS],
    features: ['bias', 'epilogue', 'residual', 'steps', 'parts', 'perm', 'words'],
    attributes,
    resolve,
  } satisfies Kernel<MatMulAttributes>,
  {
    op: 'FusedMatMul',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS],
    features: ['perm'],
    attributes,
    resolve,
  } satisfies Kernel<MatMulAttributes>,
];
