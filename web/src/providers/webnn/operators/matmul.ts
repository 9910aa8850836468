// Products of matrices.
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';

const product =
  (): Emit =>
  (builder, [a, b]) =>
    builder.matmul(a as never, b as never) as never;

function gemm({ attributes }: Call): Emit {
  const options = {
    alpha: attributes.number('alpha', 1),
    beta: attributes.number('beta', 1),
    aTranspose: attributes.integer('transA', 0) === 1,
    bTranspose: attributes.integer('transB', 0) === 1,
  };
  return (builder, [a, b, c]) =>
    builder.gemm(a as never, b as never, { ...options, ...(c && { c }) } as never) as never;
}

export default [
  { op: 'MatMul', types: [FLOATS], requires: [{ noInput: 2, otherwise: 'a bias' }], emit: product },
  { op: 'Gemm', types: [FLOATS], emit: gemm },
] satisfies MlOperator[];
