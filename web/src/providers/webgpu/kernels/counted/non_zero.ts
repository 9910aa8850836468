// NonZero and Compress. The counting node finds the number of elements, and the start of those of each chunk of 64.
import type { Context, Kernel, Shader, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { ALL, BOOL, computeType, HOST, linearMain, linearWorkgroups, load, normalizeAxis } from '../../wgsl';
import { gather } from '../gathering/gather';
import { COUNT, countOf } from './count';
import { FAN, prefixSums } from './sums';
import { Dialect } from '../../../../schema/dialect';

interface ChunkSpec extends Spec {
  readonly type: StorageType;
  readonly rank: number;
}

/** WGSL that is true if x[k] counts. Tests bits: a NaN counts, and a compiler may assume that there are none. */
function counts(type: StorageType): string {
  const value = load(type, 1, 'x[k]');
  return computeType(type) === 'f32' ? `(bitcast<u32>(${value}) & 0x7fffffffu) != 0u` : `${value} != 0`;
}

const CHUNKS: Shader<{ readonly type: StorageType }> = {
  name: 'non_zero__chunks',
  wgsl: ({ type }) =>
    linearMain(`  var found = 0;
  let end = min((i + 1u) * ${FAN}u, u.n);
  for (var k = i * ${FAN}u; k < end; k++) { found += i32(${counts(type)}); }
  y[i] = found;`),
};

// y is [rank, found]: a column for each element, its indices.
const PLACES: Shader<ChunkSpec> = {
  name: 'non_zero__places',
  wgsl({ type, rank }) {
    const axes = Array.from({ length: rank }, (_, back) => rank - 1 - back);
    const write = axes.map(
      (axis) => `      y[${axis}u * u.found + place] = i32(rest % u.dims_${axis});\n      rest /= u.dims_${axis};`,
    );
    return linearMain(`  var place = u32(starts[i]);
  let end = min((i + 1u) * ${FAN}u, u.n);
  for (var k = i * ${FAN}u; k < end; k++) {
    if (${counts(type)}) {
      var rest = k;
${write.join('\n')}
      place++;
    }
  }`);
  },
};

/** Counts among the first n elements of x: output 0 is the start of each chunk's elements, output 1 their number. */
function count(ctx: Context, x: Tensor, n: number): void {
  const chunks = Math.ceil(n / FAN);
  const starts = ctx.output(0, [chunks], DType.int32);
  const total = ctx.output(1, COUNT, DType.int32);
  const found = ctx.temp([chunks], DType.int32);
  ctx.dispatch({
    shader: CHUNKS,
    spec: { type: x.storage },
    inputs: { x },
    outputs: { y: found },
    uniforms: { count: chunks, n },
    workgroups: linearWorkgroups(chunks, ctx.device),
  });
  prefixSums(ctx, found, starts, total);
}

/** y [rank, found] = the indices of the counted ones among the first n elements of x, which has the shape `dims`. */
function places(ctx: Context, x: Tensor, n: number, dims: readonly number[], starts: Tensor, y: Tensor): void {
  ctx.dispatch({
    shader: PLACES,
    spec: { type: x.storage, rank: dims.length },
    inputs: { x, starts },
    outputs: { y },
    uniforms: { count: starts.size, n, found: y.size / dims.length, dims },
    workgroups: linearWorkgroups(starts.size, ctx.device),
  });
}

const nonZeroCount: Kernel = {
  op: Dialect.NON_ZERO_COUNT,
  domain: Dialect.INTERNAL_DOMAIN,
  types: [ALL],
  resolve: (ctx) => count(ctx, ctx.input(0), ctx.input(0).size),
};

/** A number without axes has one place, as in onnxruntime. */
const nonZero: Kernel = {
  op: 'NonZero',
  types: [ALL, ['int32'], HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const dims = x.dims.length === 0 ? [1] : x.dims;
    const found = countOf(ctx, 2);
    places(ctx, x, x.size, dims, ctx.input(1), ctx.output(0, [dims.length, found], DType.int64));
  },
};

interface CompressAttributes {
  readonly axis: number | undefined;
}

const attributes: Kernel<CompressAttributes>['attributes'] = (given) => ({
  axis: given.has('axis') ? given.integer('axis', 0) : undefined,
});

/** The axis, and the length of the condition to use: the part past the axis' end is ignored. */
function along(
  x: Tensor,
  condition: Tensor,
  given: number | undefined,
): { dims: readonly number[]; axis: number; n: number } {
  const dims = given === undefined ? [x.size] : x.dims;
  const axis = normalizeAxis(given ?? 0, dims.length);
  return { dims, axis, n: Math.min(condition.size, dims[axis]) };
}

const compressCount: Kernel<CompressAttributes> = {
  op: Dialect.COMPRESS_COUNT,
  domain: Dialect.INTERNAL_DOMAIN,
  types: [HOST, BOOL],
  attributes,
  resolve: (ctx, { axis }) => count(ctx, ctx.input(1), along(ctx.input(0), ctx.input(1), axis).n),
};

const compress: Kernel<CompressAttributes> = {
  op: 'Compress',
  types: [ALL, BOOL, ['int32'], HOST],
  attributes,
  resolve(ctx, { axis: given }) {
    const [x, condition] = [ctx.input(0), ctx.input(1)];
    const { dims, axis, n } = along(x, condition, given);
    const found = countOf(ctx, 3);
    const chosen = ctx.temp([found], DType.int32);
    places(ctx, condition, n, [n], ctx.input(2), chosen);
    const y = ctx.output(
      0,
      dims.map((dim, k) => (k === axis ? found : dim)),
    );
    ctx.call(gather, axis, [ctx.reshape(x, dims), chosen], [y]);
  },
};

export const nonZeroKernels = [nonZeroCount, nonZero, compressCount as Kernel, compress as Kernel];
