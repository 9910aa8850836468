// Products of matrices.
import { MICROSOFT_DOMAIN } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { FLOATS, type MlOperator } from '../operator';
import { axesUpTo, formula } from './shared/calls';
import { einsum } from './shared/einsum';
import { productFloats } from './shared/integers';
import { product } from './shared/product';
import { BYTES } from './shared/types';
import { Dialect } from '../../../schema/dialect';

/** `batch`: moves the first axis before the last one; `last`: swaps the last two. */
function turned(f: Formula, x: MlOperand, batch: boolean, last: boolean): MlOperand {
  const axes = x.shape.map((_, i) => i);
  if (axes.length < 2 || !(batch || last)) return x;
  const read = batch ? [...axes.slice(1, -1), 0, axes.length - 1] : axes;
  const permutation = last ? [...read.slice(0, -2), read.at(-1), read.at(-2)] : read;
  return f.plain('transpose', x, { permutation });
}

/** The bound up to which products and sums in float32 are exact. */
const EXACT = 2 ** 24;

/** The product of integers up to `mosts`: if sums could be larger, computed from their upper and their lower bits. */
function exact(f: Formula, [a, b]: readonly MlOperand[], mosts: readonly number[], depth: number): MlOperand {
  if (mosts[0] * mosts[1] * depth <= EXACT) return f.cast(product(f, a, b), 'int32');
  const wider = mosts[0] >= mosts[1] ? 0 : 1;
  const x = wider ? b : a;
  const upper = f.of('floor', f.of('mul', x, 1 / 16));
  const part = (of: MlOperand, most: number) =>
    exact(f, wider ? [a, of] : [of, b], wider ? [mosts[0], most] : [most, mosts[1]], depth);
  const lower = part(f.of('sub', x, f.of('mul', upper, 16)), 15);
  return f.of('add', f.of('mul', part(upper, Math.ceil(mosts[wider] / 16)), 16), lower);
}

/**
 * For bytes minus their zero points, which are one for all, or one per row of the left matrix and column of the right
 * one.
 */
function integers(f: Formula, pair: readonly MlOperand[], zeros: readonly (MlOperand | undefined)[]): MlOperand {
  const shifted = pair.map((x, i) => {
    const zero = zeros[i];
    const wide = f.cast(x, 'float32');
    return zero ? f.of('sub', wide, column(f, f.cast(zero, 'float32'), i === 0)) : wide;
  });
  return exact(f, shifted, [255, 255], pair[0].shape.at(-1)!);
}

const column = (f: Formula, x: MlOperand, left: boolean) =>
  left && x.shape.length === 1 ? f.reshape(x, [...x.shape, 1]) : x;

export default [
  {
    op: 'MatMul',
    types: [FLOATS],
    requires: [{ noInput: 2, otherwise: 'a bias' }, ...axesUpTo(5, 0, 1)],
    emit: formula((f, [a, b]) => product(f, a, b)),
  },
  {
    op: 'FusedMatMul',
    domain: MICROSOFT_DOMAIN,
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
  {
    op: 'MatMulInteger',
    types: [BYTES],
    requires: axesUpTo(5, 0, 1),
    emit: formula((f, [a, b, ...zeros]) => integers(f, [a, b], zeros)),
  },
  {
    op: 'QLinearMatMul',
    types: [BYTES, FLOATS, BYTES, BYTES, FLOATS, BYTES, FLOATS, BYTES],
    requires: axesUpTo(5, 0, 3),
    features: ['signed'],
    emit: formula((f, [a, aScale, aZero, b, bScale, bZero, yScale, yZero], { attributes }) => {
      const columns = attributes.integer(Dialect.PACKED_N, 0);
      if (columns) {
        const depth = a.shape.at(-1)!;
        const rows = f.reshape(a, [sizeOf(a.shape) / depth, depth]);
        const floats = productFloats(f, [rows, aScale, aZero], [b, bScale, bZero], true);
        return f.reshape(f.quantized(floats, [yScale, yZero]), [...a.shape.slice(0, -1), columns]);
      }
      const [left, right, result] = [aScale, bScale, yScale].map((scale, i) =>
        column(f, f.cast(scale, 'float32'), i !== 1),
      );
      const steps = f.of('div', f.of('mul', left, right), result);
      const y = f.of('roundEven', f.of('mul', f.cast(integers(f, [a, b], [aZero, bZero]), 'float32'), steps));
      const [least, most] = yZero.dataType === 'int8' ? [-128, 127] : [0, 255];
      const moved = f.of('add', y, column(f, f.cast(yZero, 'float32'), true));
      return f.cast(f.of('min', f.of('max', moved, least), most), yZero.dataType);
    }),
  },
  {
    op: 'Einsum',
    types: [FLOATS],
    requires: axesUpTo(5, 0, 1, 2),
    emit: formula((f, x, { attributes }) => einsum(f, x, attributes.text('equation', ''))),
  },
] satisfies MlOperator[];
