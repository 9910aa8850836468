// Products of integer matrices: one thread for each element.
import type { Context, Shader, Spec, Tensor } from '../../../../contract/kernel';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { foldBatch, type MatrixShapes, operandOffsets } from './product/matrices';

interface IntegerSpec extends Spec {
  readonly batch: number;
  readonly type: 'i32' | 'u32';
}

export function multiplyIntegers(ctx: Context, a: Tensor, b: Tensor, y: Tensor, shapes: MatrixShapes): void {
  const { m, n, k } = shapes;
  const batch = foldBatch(shapes);
  ctx.dispatch({
    shader: SHADER,
    spec: { batch: batch.dims.length, type: y.storage as 'i32' | 'u32' },
    inputs: { a, b },
    outputs: { y },
    uniforms: {
      count: y.size,
      m,
      n,
      k,
      batch: batch.dims,
      a_batch: batch.a.map((stride) => stride * m * k),
      b_batch: batch.b.map((stride) => stride * k * n),
    },
    workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const SHADER: Shader<IntegerSpec> = {
  name: 'matmul_integers__any_1x1',
  wgsl({ batch, type }) {
    return linearMain(`  ${operandOffsets(batch)}
  var sum = ${type}(0);
  for (var k = 0u; k < u.k; k++) { sum += a[at_a + k] * b[at_b + k * u.n]; }
  y[i] = sum;`);
  },
};
