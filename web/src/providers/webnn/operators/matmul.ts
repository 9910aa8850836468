// Products of matrices.
import type { MlOperand } from '../ml';
import { FLOATS, type MlOperator } from '../operator';
import { axesUpTo, type Formula, formula } from './shared/formula';

/** A vector is a row on the left and a column on the right, and its axis is not the result's. */
function product(f: Formula, a: MlOperand, b: MlOperand): MlOperand {
  const left = a.shape.length === 1 ? f.reshape(a, [1, ...a.shape]) : a;
  const right = b.shape.length === 1 ? f.reshape(b, [...b.shape, 1]) : b;
  const y = f.plain('matmul', left, right);
  const batch = y.shape.slice(0, -2);
  return f.reshape(y, [...batch, ...(a === left ? [y.shape.at(-2)!] : []), ...(b === right ? [y.shape.at(-1)!] : [])]);
}

/** `batch`: the first axis comes before the last one; `last`: the last two change places. */
function turned(f: Formula, x: MlOperand, batch: boolean, last: boolean): MlOperand {
  const axes = x.shape.map((_, i) => i);
  if (axes.length < 2 || !(batch || last)) return x;
  const read = batch ? [...axes.slice(1, -1), 0, axes.length - 1] : axes;
  const permutation = last ? [...read.slice(0, -2), read.at(-1), read.at(-2)] : read;
  return f.plain('transpose', x, { permutation });
}

export default [
  {
    op: 'MatMul',
    types: [FLOATS],
    requires: [{ noInput: 2, otherwise: 'a bias' }, ...axesUpTo(5, 0, 1)],
    emit: formula((f, [a, b]) => product(f, a, b)),
  },
  {
    op: 'FusedMatMul',
    domain: 'com.microsoft',
    types: [FLOATS],
    requires: axesUpTo(5, 0, 1),
    emit: formula((f, [a, b], { attributes }) => {
      const [left, right] = [a, b].map((x, i) => {
        const [batch, last] = ['transBatch', 'trans'].map((name) => attributes.integer(name + 'AB'[i], 0) === 1);
        return turned(f, x, batch, last);
      });
      const alpha = attributes.number('alpha', 1);
      const y = product(f, left, right);
      return alpha === 1 ? y : f.of('mul', y, alpha);
    }),
  },
  {
    op: 'Gemm',
    types: [FLOATS],
    emit: formula((f, [a, b, c], { attributes }) =>
      f.plain('gemm', a, b, {
        alpha: attributes.number('alpha', 1),
        beta: attributes.number('beta', 1),
        aTranspose: attributes.integer('transA', 0) === 1,
        bTranspose: attributes.integer('transB', 0) === 1,
        ...(c && { c }),
      }),
    ),
  },
] satisfies MlOperator[];
