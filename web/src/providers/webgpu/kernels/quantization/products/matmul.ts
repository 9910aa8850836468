// MatMulInteger and QLinearMatMul: products of bytes minus their zero points. A thread has a tile of 4 columns, or one
// element if columns are not a multiple of 4.
import { DType } from '../../../../../schema';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../../contract/kernel';
import { inLanes } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { expanded } from '../../shared/expand';
import { foldBatch, operandOffsets, matrixShapes } from '../../matmul/product/matrices';
import {
  byteRange,
  type Factor,
  factorInputs,
  factorOf,
  factorUniforms,
  requantized,
  scaleAt,
  zeroPoint,
} from './requantize';
import { repeated } from '../../../wgsl/repeated';

interface SumSpec extends Spec {
  readonly batch: number;
  readonly aZero: boolean;
  readonly bZero: boolean;
  /** True if the sums become bytes again. */
  readonly scaled: boolean;
  readonly storage: StorageType;
}

interface ProductSpec extends SumSpec {
  /** True if zero points and scales differ between the products of the batch. */
  readonly ofBatch: boolean;
}

interface TileSpec extends SumSpec {
  readonly rows: 1 | 4;
  /** Elements of a row of a that are read at a time. */
  readonly step: 1 | 4;
}

const TILE: Shader<TileSpec> = {
  name: 'matmul_quantized__any_tile',
  wgsl({ batch, rows, step, aZero, bZero, scaled, storage }) {
    const axes = Array.from({ length: batch }, (_, i) => batch - 1 - i);
    const ofColumns = (type: string, text: (column: string) => string) =>
      `vec4<${type}>(${[0, 1, 2, 3].map((t) => text(`(column * 4u + ${t}u)`)).join(', ')})`;
    const result = (r: number) => {
      if (!scaled) return `sum_${r}`;
      const scale = `${scaleAt('a_scale', `row_${r}`, '0u')} * ${ofColumns('f32', (column) =>
        scaleAt('b_scale', '0u', column),
      )} / ${scaleAt('y_scale', `row_${r}`, '0u')}`;
      return requantized(storage, `sum_${r}`, scale, zeroPoint(true, 'y_zero', `row_${r}`, '0u'), 4);
    };
    return linearMain(`  let columns = u.n / 4u;
  let column = i % columns;
  let row_0 = i / columns % u.row_blocks * ${rows}u;
  let z = i / columns / u.row_blocks;
  var rest = z;
  var at_a = 0u;
  var at_b = column;
  ${axes
    .map(
      (axis) => `let index_${axis} = rest % u.batch_${axis}; rest = rest / u.batch_${axis};
  at_a += index_${axis} * u.a_batch_${axis}; at_b += index_${axis} * u.b_batch_${axis};`,
    )
    .join('\n  ')}
  let b_less = ${ofColumns('i32', (column) => zeroPoint(bZero, 'b_zero', '0u', column))};
  ${repeated(rows - 1, (r) => `let row_${r + 1} = min(row_0 + ${r + 1}u, u.m - 1u);`)}
  ${repeated(
    rows,
    (r) =>
      `let at_${r} = at_a + row_${r} * u.steps; let a_less_${r} = ${zeroPoint(aZero, 'a_zero', `row_${r}`, '0u')};
        var sum_${r} = vec4<i32>(0);`,
  )}
  for (var k = 0u; k < u.steps; k++) {
  ${repeated(step, (s) => `let b_${s} = vec4<i32>(b[at_b + (k * ${step}u + ${s}u) * columns]) - b_less;`)}
  ${repeated(rows, (r) => `let a_${r} = ${step === 4 ? 'vec4<i32>' : 'i32'}(a[at_${r} + k]) - a_less_${r};`)}
  ${repeated(rows, (r) => repeated(step, (s) => `sum_${r} += a_${r}${step === 4 ? `[${s}]` : ''} * b_${s};`))}
  }
  let at_y = (z * u.m + row_0) * columns + column;
  ${repeated(rows, (r) => `if (row_0 + ${r}u < u.m) { y[at_y + ${r}u * columns] = ${result(r)}; }`)}`);
  },
};

const SHADER: Shader<ProductSpec> = {
  name: 'matmul_quantized__any',
  wgsl({ batch, ofBatch, aZero, bZero, scaled, storage }) {
    const [r, c] = ofBatch ? ['(i / u.n)', '(i / u.n / u.m * u.n + column)'] : ['row', 'column'];
    const result = scaled
      ? requantized(
          storage,
          'sum',
          `${scaleAt('a_scale', r, c)} * ${scaleAt('b_scale', r, c)} / ${scaleAt('y_scale', r, c)}`,
          zeroPoint(true, 'y_zero', r, c),
        )
      : 'sum';
    return linearMain(`  ${operandOffsets(batch)}
  let a_less = ${zeroPoint(aZero, 'a_zero', r, c)};
  let b_less = ${zeroPoint(bZero, 'b_zero', r, c)};
  var sum = 0i;
  for (var k = 0u; k < u.k; k++) { sum += (i32(a[at_a + k]) - a_less) * (i32(b[at_b + k * u.n]) - b_less); }
  y[i] = ${result};`);
  },
};

function product(
  ctx: Context,
  a: Tensor,
  b: Tensor,
  zeros: { a?: Tensor; b?: Tensor },
  dtype: DType,
  scales?: Readonly<Record<string, Tensor>>,
): void {
  const shapes = matrixShapes(a.dims, b.dims);
  const y = ctx.output(0, shapes.output, dtype);
  const { m, n, k } = shapes;
  const batch = foldBatch(shapes);
  const given: { [name: string]: [Tensor | undefined, 'row' | 'column'] } = {
    a_zero: [zeros.a, 'row'],
    b_zero: [zeros.b, 'column'],
    ...(scales && {
      a_scale: [scales.a, 'row'],
      b_scale: [scales.b, 'column'],
      y_scale: [scales.y, 'row'],
      y_zero: [scales.yZero, 'row'],
    }),
  };
  const length = { row: m, column: n };
  const ofBatch = Object.values(given).some(
    ([tensor, along]) => tensor !== undefined && tensor.size > 1 && tensor.size !== length[along],
  );
  const factors = Object.fromEntries(
    Object.entries(given).map(([name, [tensor, along]]): [string, Factor] => {
      if (!ofBatch || !tensor || tensor.size === 1) return [name, factorOf(tensor, along, length[along])];
      const outer = shapes.output.slice(0, -2);
      const standing = along === 'row' && tensor.dims.length === 1 ? ctx.reshape(tensor, [m, 1]) : tensor;
      const target = along === 'row' ? [...outer, m, 1] : [...outer, 1, n];
      const from = target.length - standing.dims.length;
      if (from < 0 || !standing.dims.every((size, i) => size === 1 || size === target[from + i]))
        throw new KernelError(
          `${name} of shape [${tensor.dims}] should have one element or ${length[along]}, or the shape [${target}]`,
        );
      const all = expanded(ctx, standing, target);
      return [name, factorOf(all, along, all.size)];
    }),
  );
  const [least, most] = byteRange(dtype);
  const spec: SumSpec = {
    batch: batch.dims.length,
    aZero: zeros.a !== undefined,
    bZero: zeros.b !== undefined,
    scaled: scales !== undefined,
    storage: y.storage,
  };
  const uniforms = { m, n, batch: batch.dims, ...factorUniforms(factors), ...(scales && { least, most }) };
  const aBatch = batch.a.map((stride) => stride * m * k);
  const bBatch = batch.b.map((stride) => stride * k * n);
  if (n % 4 !== 0 || ofBatch) {
    ctx.dispatch({
      shader: SHADER,
      spec: { ...spec, ofBatch },
      inputs: { a, b, ...factorInputs(factors) },
      outputs: { y },
      uniforms: { count: y.size, k, a_batch: aBatch, b_batch: bBatch, ...uniforms },
      i32: ['least', 'most'],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
    return;
  }
  const step = k % 4 === 0 ? 4 : 1;
  const rows = m > 1 && !ctx.device.ownElement && (ctx.device.software || y.size >= BUSY) ? 4 : 1;
  const blocks = Math.ceil(m / rows);
  const count = batch.dims.reduce((product, dim) => product * dim, blocks) * (n / 4);
  ctx.dispatch({
    shader: TILE,
    spec: { ...spec, rows, step },
    inputs: { a: inLanes(a, step), b: inLanes(b, 4), ...factorInputs(factors) },
    outputs: { y: inLanes(y, 4) },
    uniforms: {
      count,
      row_blocks: blocks,
      steps: k / step,
      a_batch: aBatch.map((stride) => stride / step),
      b_batch: bBatch.map((stride) => stride / 4),
      ...uniforms,
    },
    i32: ['least', 'most'],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

/** Elements with which a GPU is occupied at 16 per thread. */
const BUSY = 1 << 18;

const BYTES: readonly DTypeName[] = ['int8', 'uint8'];
const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

export const matMulInteger: Kernel = {
  op: 'MatMulInteger',
  types: [BYTES],
  resolve: (ctx) => product(ctx, ctx.input(0), ctx.input(1), { a: ctx.inputs[2], b: ctx.inputs[3] }, DType.int32),
};

/** a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
export const qLinearMatMul: Kernel = {
  op: 'QLinearMatMul',
  types: [BYTES, FLOATS, BYTES, BYTES, FLOATS, BYTES, FLOATS, BYTES],
  resolve: (ctx) => {
    const scales = { a: ctx.input(1), b: ctx.input(4), y: ctx.input(6), yZero: ctx.input(7) };
    product(ctx, ctx.input(0), ctx.input(3), { a: ctx.input(2), b: ctx.input(5) }, ctx.input(7).dtype, scales);
  },
};
