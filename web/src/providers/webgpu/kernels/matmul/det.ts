// Det and com.microsoft's Inverse: Gaussian elimination with the largest pivots, a thread for each matrix.
import {
  type Context,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { FLOATS, laneAliases, linearMain, linearWorkgroups, load, mathFunctions, sizeOf, stored } from '../../wgsl';

interface EliminationSpec extends Spec {
  readonly inverse: boolean;
  readonly from: StorageType;
  readonly to: StorageType;
}

// `work` has the matrix, and for an inverse the identity to its right: rows of u.width elements.
const ELIMINATION: Shader<EliminationSpec> = {
  name: 'det__elimination',
  wgsl: ({ inverse, from, to }) => `${laneAliases(1)}
${mathFunctions('nan')}
${linearMain(`  let n = u.n;
  let base = i * n * u.width;
  for (var row = 0u; row < n; row++) {
    for (var column = 0u; column < n; column++) {
      work[base + row * u.width + column] = ${load(from, 1, 'x[(i * n + row) * n + column]')};
${inverse ? '      work[base + row * u.width + n + column] = select(0.0, 1.0, row == column);' : ''}
    }
  }
  var determinant = 1.0;
  for (var column = 0u; column < n; column++) {
    var pivot = column;
    for (var row = column + 1u; row < n; row++) {
      if (abs(work[base + row * u.width + column]) > abs(work[base + pivot * u.width + column])) { pivot = row; }
    }
    let head = work[base + pivot * u.width + column];
    determinant *= select(head, -head, pivot != column);
    if (head == 0.0) { break; }
    if (pivot != column) {
      for (var k = 0u; k < u.width; k++) {
        let held = work[base + column * u.width + k];
        work[base + column * u.width + k] = work[base + pivot * u.width + k];
        work[base + pivot * u.width + k] = held;
      }
    }
    for (var row = ${inverse ? '0u' : 'column + 1u'}; row < n; row++) {
      if (row == column) { continue; }
      let factor = work[base + row * u.width + column] / head;
      for (var k = column; k < u.width; k++) {
        work[base + row * u.width + k] -= factor * work[base + column * u.width + k];
      }
    }
  }
${
  inverse
    ? `  for (var at = 0u; at < n * n; at++) {
    let row = at / n;
    let value = work[base + row * u.width + n + at % n] / work[base + row * u.width + row];
    y[i * n * n + at] = ${stored(to, 1, 'select(value, nan(), determinant == 0.0)')};
  }`
    : `  y[i] = ${stored(to, 1, 'determinant')};`
}`)}`,
};

function resolve(ctx: Context, inverse: boolean): void {
  const x = ctx.input(0);
  const rank = x.dims.length;
  const n = x.dims[rank - 1];
  if (rank < 2 || x.dims[rank - 2] !== n)
    throw new KernelError(`${inverse ? 'Inverse' : 'Det'} of [${x.dims}], which are no square matrices`);
  const matrices = sizeOf(x.dims.slice(0, -2));
  const y = ctx.output(0, inverse ? x.dims : x.dims.slice(0, -2));
  const width = inverse ? 2 * n : n;
  const work: Tensor = ctx.temp([matrices, n, width], DType.float32);
  ctx.dispatch({
    shader: ELIMINATION,
    spec: { inverse, from: x.storage, to: y.storage },
    inputs: { x },
    outputs: { y, work },
    uniforms: { count: matrices, n, width },
    workgroups: linearWorkgroups(matrices, ctx.device),
  });
}

const det: Kernel = { op: 'Det', types: [FLOATS], resolve: (ctx) => resolve(ctx, false) };
const inverse: Kernel = {
  op: 'Inverse',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve: (ctx) => resolve(ctx, true),
};

export default [det, inverse];
