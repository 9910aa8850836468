// MatMul (a third input is a bias and a fourth a residual that Python's passes put there), and com.microsoft's
// FusedMatMul (transposes and a factor).
import type { Attributes } from '../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Tensor,
} from '../../contract/kernel';
import { readEpilogue, residualOf } from '../../wgsl/epilogue';
import type { Program } from '../../wgsl/program';
import { permuted } from '../shared/permute';
import { matrixShapes, multiplyInParts, multiplyMatrices } from './product/matrices';
import { readsTransposed } from './product/multiply';
import { multiplyIntegers } from './integers';

interface MatMulAttributes {
  readonly epilogue?: Program;
  readonly alpha: number;
  /** Whether the last two axes of each operand are swapped, and whether its first axis comes just before the last. */
  readonly swap: readonly [boolean, boolean];
  readonly rotate: readonly [boolean, boolean];
  /** Whether the sums of parts of k are left to whoever reads them. */
  readonly parts: boolean;
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const INTEGERS: readonly DTypeName[] = ['int32', 'uint32', 'int64', 'uint64'];

function attributes(a: Attributes): MatMulAttributes {
  const flag = (name: string) => a.integer(name, 0) !== 0;
  return {
    epilogue: readEpilogue(a),
    alpha: a.number('alpha', 1),
    swap: [flag('transA'), flag('transB')],
    rotate: [flag('transBatchA'), flag('transBatchB')],
    parts: flag('y_parts'),
  };
}

/** The operand as [...batch, rows, columns]. */
function operand(ctx: Context, x: Tensor, swap: boolean, rotate: boolean): Tensor {
  const rank = x.dims.length;
  if (rank < 2 || (!swap && !rotate)) return x;
  let perm = x.dims.map((_, axis) => axis);
  if (rotate) perm = [...perm.slice(1, -1), 0, rank - 1];
  if (swap) perm = [...perm.slice(0, -2), perm[rank - 1], perm[rank - 2]];
  return permuted(ctx, x, perm);
}

function resolve(ctx: Context, { epilogue, alpha, swap, rotate, parts }: MatMulAttributes): void {
  const a = operand(ctx, ctx.input(0), swap[0], rotate[0]);
  const rank = ctx.input(1).dims.length;
  const transposed =
    swap[1] &&
    rank >= 2 &&
    a.dims.length >= 2 &&
    readsTransposed(ctx, a.dims[a.dims.length - 2], a.dims[a.dims.length - 1]);
  const b = operand(ctx, ctx.input(1), swap[1] && !transposed, rotate[1]);
  const shapes = matrixShapes(
    a.dims,
    transposed ? [...b.dims.slice(0, -2), b.dims[rank - 1], b.dims[rank - 2]] : b.dims,
  );
  if (parts) {
    multiplyInParts(ctx, a, b, shapes, transposed);
    return;
  }
  const y = ctx.output(0, shapes.output);
  const residual = residualOf(ctx, epilogue);
  if (y.storage === 'i32' || y.storage === 'u32') {
    if (epilogue || alpha !== 1 || ctx.inputs[2])
      throw new KernelError('an integer MatMul with an epilogue, a factor or a bias', true);
    multiplyIntegers(ctx, a, b, y, shapes);
    return;
  }
  multiplyMatrices(ctx, a, b, y, shapes, { alpha, epilogue, bias: ctx.inputs[2], residual, transposed });
}

export default [
  {
    op: 'MatMul',
    types: [[...FLOATS, ...INTEGERS], [...FLOATS, ...INTEGERS], FLOATS, FLOATS],
    features: ['bias', 'epilogue', 'residual', 'steps', 'parts'],
    attributes,
    resolve,
  } satisfies Kernel<MatMulAttributes>,
  {
    op: 'FusedMatMul',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS],
    attributes,
    resolve,
  } satisfies Kernel<MatMulAttributes>,
];
