// Gemm: alpha * A @ B + beta * C, with transposes (a fourth input is a residual that Python's passes put there); and
// com.microsoft's FusedGemm, which ends in an activation.
import type { Attributes } from '../../contract/attributes';
import { type Context, type Kernel, KernelError, MICROSOFT_DOMAIN } from '../../contract/kernel';
import { type Activation, makeActivation, readActivation } from '../../wgsl/activation';
import { broadcastStrides } from '../../wgsl/shape';
import { permuted } from '../shared/permute';
import { checkResidual } from './product/matrices';
import { multiply, readsTransposed } from './product/multiply';

interface GemmAttributes {
  readonly alpha: number;
  readonly beta: number;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly activation?: Activation;
}

function attributes(a: Attributes): GemmAttributes {
  const params = ['activation_alpha', 'activation_beta'].filter((name) => a.has(name)).map((name) => a.number(name, 0));
  return {
    alpha: a.number('alpha', 1),
    beta: a.number('beta', 1),
    transA: a.integer('transA', 0) !== 0,
    transB: a.integer('transB', 0) !== 0,
    activation: params.length > 0 ? makeActivation(a.text('activation', ''), params) : readActivation(a),
  };
}

function resolve(ctx: Context, { alpha, beta, transA, transB, activation }: GemmAttributes): void {
  const a = transA ? permuted(ctx, ctx.input(0), [1, 0]) : ctx.input(0);
  const c = beta === 0 ? undefined : ctx.inputs[2];
  const [m, k] = a.dims;
  const transposed = transB && readsTransposed(ctx, m, k);
  const b = transB && !transposed ? permuted(ctx, ctx.input(1), [1, 0]) : ctx.input(1);
  const n = b.dims[transposed ? 0 : 1];
  if (a.dims.length !== 2 || b.dims.length !== 2 || b.dims[transposed ? 1 : 0] !== k)
    throw new KernelError(`Gemm of [${a.dims}] and [${b.dims}]`);
  const y = ctx.output(0, [m, n]);
  const residual = ctx.inputs[3];
  checkResidual(residual, y);
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
    activation,
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

const gemm: Kernel<GemmAttributes> = { op: 'Gemm', types: [['float32', 'float16']], attributes, resolve };

export default [gemm, { ...gemm, op: 'FusedGemm', domain: MICROSOFT_DOMAIN }];
