// Gemm: alpha * A @ B + beta * C, with transposes (Python's passes add a residual as fourth input); and com.microsoft's
// FusedGemm, which ends in an activation.
import type { Attributes } from '../../../../contract/attributes';
import { type Context, type Kernel, KernelError, MICROSOFT_DOMAIN } from '../../../../contract/kernel';
import { epilogueOf, readEpilogue, residualOf } from '../../wgsl/epilogue';
import type { Program } from '../../wgsl/program';
import { broadcastStrides } from '../../../../contract/shape';
import { permuted } from '../shared/permute';
import { multiply, readsTransposed } from './product/multiply';
import { Place } from '../../../../schema/dialect';

interface GemmAttributes {
  readonly alpha: number;
  readonly beta: number;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly epilogue?: Program;
}

function attributes(a: Attributes): GemmAttributes {
  return {
    alpha: a.number('alpha', 1),
    beta: a.number('beta', 1),
    transA: a.integer('transA', 0) !== 0,
    transB: a.integer('transB', 0) !== 0,
    epilogue: readEpilogue(a),
  };
}

function resolve(ctx: Context, { alpha, beta, transA, transB, epilogue }: GemmAttributes): void {
  const a = transA ? permuted(ctx, ctx.input(0), [1, 0]) : ctx.input(0);
  const c = beta === 0 ? undefined : ctx.inputs[Place.PRODUCT_BIAS];
  const [m, k] = a.dims;
  const transposed = transB && readsTransposed(ctx, m, k);
  const b = transB && !transposed ? permuted(ctx, ctx.input(1), [1, 0]) : ctx.input(1);
  const n = b.dims[transposed ? 0 : 1];
  if (a.dims.length !== 2 || b.dims.length !== 2 || b.dims[transposed ? 1 : 0] !== k)
    throw new KernelError(`Gemm of [${a.dims}] and [${b.dims}]`);
  const y = ctx.output(0, [m, n]);
  const residual = residualOf(ctx, epilogue, y.dims);
  const common = {
    left: 'matrix' as const,
    a,
    b,
    y,
    m,
    n,
    depth: k,
    taps: 1,
    z: 1,
    lda: k,
    ldb: transposed ? k : n,
    ldy: n,
    transposed,
    alpha,
    epilogue,
    residual,
  };
  if (!c) {
    multiply(ctx, common);
  } else {
    const [row, column] = broadcastStrides(c.dims, [m, n]);
    multiply(ctx, {
      ...common,
      beta,
      bias: c,
      biasStrides: row === 0 && column === 1 && n === c.size ? undefined : [row, column],
    });
  }
}

function fusedAttributes(a: Attributes): GemmAttributes {
  const given = ['activation_alpha', 'activation_beta'].filter((name) => a.has(name));
  const numbers = given.map((name) => a.number(name, 0));
  return { ...attributes(a), epilogue: epilogueOf(a.text('activation', ''), numbers) };
}

const gemm: Kernel<GemmAttributes> = { op: 'Gemm', types: [['float32', 'float16']], attributes, resolve };

export default [
  { ...gemm, features: ['epilogue', 'residual', 'steps'] },
  { ...gemm, op: 'FusedGemm', domain: MICROSOFT_DOMAIN, attributes: fusedAttributes },
];
