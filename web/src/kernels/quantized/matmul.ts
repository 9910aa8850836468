// MatMulInteger and QLinearMatMul: products of bytes less their zero points, one thread for each element.
import { DType } from '../../schema';
import { type Context, type DTypeName, type Kernel, type Shader, type Spec, type StorageType, type Tensor } from '../../jsep/kernel';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { expanded } from '../_expand';
import { foldBatch, operandOffsets, matrixShapes } from '../product/matrices';
import { byteRange, type Factor, factorInputs, factorOf, factorUniforms, requantized, scaleAt, zeroPoint } from './requantize';

interface ProductSpec extends Spec {
  readonly batch: number;
  /** Whether zero points and scales differ from one product of the batch to the next. */
  readonly ofBatch: boolean;
  readonly aZero: boolean;
  readonly bZero: boolean;
  /** Whether the sums become bytes again. */
  readonly scaled: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<ProductSpec> = {
  name: 'matmul_quantized__any',
  wgsl({ batch, ofBatch, aZero, bZero, scaled, storage }) {
    const [r, c] = ofBatch ? ['(i / u.n)', '(i / u.n / u.m * u.n + column)'] : ['row', 'column'];
    const result = scaled
      ? requantized(storage, 'sum', `${scaleAt('a_scale', r, c)} * ${scaleAt('b_scale', r, c)} / ${scaleAt('y_scale', r, c)}`, zeroPoint(true, 'y_zero', r, c))
      : 'sum';
    return linearMain(`  ${operandOffsets(batch)}
  let a_less = ${zeroPoint(aZero, 'a_zero', r, c)};
  let b_less = ${zeroPoint(bZero, 'b_zero', r, c)};
  var sum = 0i;
  for (var k = 0u; k < u.k; k++) { sum += (i32(a[at_a + k]) - a_less) * (i32(b[at_b + k * u.n]) - b_less); }
  y[i] = ${result};`);
  },
};

function product(ctx: Context, a: Tensor, b: Tensor, zeros: { a?: Tensor; b?: Tensor }, dtype: DType, scales?: Readonly<Record<string, Tensor>>): void {
  const shapes = matrixShapes(a.dims, b.dims);
  const y = ctx.output(0, shapes.output, dtype);
  const { m, n, k } = shapes;
  const batch = foldBatch(shapes);
  const given: { [name: string]: [Tensor | undefined, 'row' | 'column'] } = {
    a_zero: [zeros.a, 'row'], b_zero: [zeros.b, 'column'],
    ...(scales && { a_scale: [scales.a, 'row'], b_scale: [scales.b, 'column'], y_scale: [scales.y, 'row'], y_zero: [scales.yZero, 'row'] }),
  };
  const length = { row: m, column: n };
  const ofBatch = Object.values(given).some(([tensor, along]) => tensor !== undefined && tensor.size > 1 && tensor.size !== length[along]);
  const factors = Object.fromEntries(Object.entries(given).map(([name, [tensor, along]]): [string, Factor] => {
    if (!ofBatch || !tensor || tensor.size === 1) return [name, factorOf(tensor, along, length[along])];
    const outer = shapes.output.slice(0, -2);
    const standing = along === 'row' && tensor.dims.length === 1 ? ctx.reshape(tensor, [m, 1]) : tensor;
    const all = expanded(ctx, standing, along === 'row' ? [...outer, m, 1] : [...outer, 1, n]);
    return [name, factorOf(all, along, all.size)];
  }));
  const [least, most] = byteRange(dtype);
  ctx.dispatch({
    shader: SHADER, spec: { batch: batch.dims.length, ofBatch, aZero: zeros.a !== undefined, bZero: zeros.b !== undefined, scaled: scales !== undefined, storage: y.storage },
    inputs: { a, b, ...factorInputs(factors) }, outputs: { y },
    uniforms: {
      count: y.size, m, n, k, batch: batch.dims, a_batch: batch.a.map((stride) => stride * m * k), b_batch: batch.b.map((stride) => stride * k * n),
      ...factorUniforms(factors), ...(scales && { least, most }),
    },
    i32: ['least', 'most'], workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const BYTES: readonly DTypeName[] = ['int8', 'uint8'];
const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

export const matMulInteger: Kernel = {
  op: 'MatMulInteger', types: [BYTES],
  resolve: (ctx) => product(ctx, ctx.input(0), ctx.input(1), { a: ctx.inputs[2], b: ctx.inputs[3] }, DType.int32),
};

/** a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
export const qLinearMatMul: Kernel = {
  op: 'QLinearMatMul', types: [BYTES, FLOATS, BYTES, BYTES, FLOATS, BYTES, FLOATS, BYTES],
  resolve: (ctx) => {
    const scales = { a: ctx.input(1), b: ctx.input(4), y: ctx.input(6), yZero: ctx.input(7) };
    product(ctx, ctx.input(0), ctx.input(3), { a: ctx.input(2), b: ctx.input(5) }, ctx.input(7).dtype, scales);
  },
};
