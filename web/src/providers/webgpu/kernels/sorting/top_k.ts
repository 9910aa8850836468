// TopK by counting: an element's place is the number of elements before it. No barriers, no order of threads, and equal
// elements keep the order of their indices, as in onnxruntime. Long rows are cut into chunks, whose best elements are
// ranked again.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  computeType,
  HOST,
  linearMain,
  linearWorkgroups,
  load,
  normalizeAxis,
  NUMBERS,
  orderKey,
  sizeOf,
} from '../../wgsl';

interface TopKSpec extends Spec {
  readonly largest: boolean;
  readonly type: StorageType;
  /** True if the elements come with their original indices. */
  readonly numbered: boolean;
}

// x is [outer, n, inner], cut along n into u.chunks chunks; values and indices are [outer, chunks, k, inner].
const TOP_K: Shader<TopKSpec> = {
  name: 'top_k',
  wgsl({ largest, type, numbered }) {
    const compute = computeType(type);
    const key = (at: string): string => `${largest ? '' : '~'}key(${load(type, 1, `x[${at}]`)})`;
    return `${orderKey(compute)}${linearMain(`  let column = i % u.inner;
  let element = i / u.inner % u.n;
  let outer = i / u.inner / u.n;
  let chunk = ((element + 1u) * u.chunks - 1u) / u.n;
  let first = chunk * u.n / u.chunks;
  let end = (chunk + 1u) * u.n / u.chunks;
  let row = outer * u.n;
  let mine = ${key('i')};
  ${numbered ? 'let number = numbers[i];' : 'let number = i32(element);'}
  var place = 0u;
  for (var other = first; other < end && place < u.k; other++) {
    let at = (row + other) * u.inner + column;
    let theirs = ${key('at')};
    let earlier = ${numbered ? 'numbers[at] < number' : 'other < element'};
    place += u32((theirs > mine) | ((theirs == mine) & earlier));
  }
  if (place < u.k) {
    let at = ((outer * u.chunks + chunk) * u.k + place) * u.inner + column;
    values[at] = x[i];
    indices[at] = number;
  }`)}`;
  },
};

/** The least number of elements that are ranked against each other at once. */
const CHUNK = 2048;

interface Rows {
  readonly x: Tensor;
  readonly numbers?: Tensor;
  readonly outer: number;
  readonly n: number;
  readonly inner: number;
}

function topK(ctx: Context, rows: Rows, k: number, largest: boolean, values: Tensor, indices: Tensor): void {
  const { x, numbers, outer, n, inner } = rows;
  const chunks = Math.max(1, Math.floor(n / Math.max(CHUNK, 4 * k)));
  const last = chunks === 1;
  const dims = [outer, chunks * k, inner];
  const best = last ? values : ctx.temp(dims, x.dtype);
  const places = last ? indices : ctx.temp(dims, DType.int32);
  ctx.dispatch<TopKSpec>({
    shader: TOP_K,
    spec: { largest, type: x.storage, numbered: numbers !== undefined },
    inputs: { x, ...(numbers ? { numbers } : {}) },
    outputs: { values: best, indices: places },
    uniforms: { count: x.size, n, inner, chunks, k },
    workgroups: linearWorkgroups(x.size, ctx.device),
  });
  if (!last) topK(ctx, { x: best, numbers: places, outer, n: chunks * k, inner }, k, largest, values, indices);
}

const kernel: Kernel<{ axis: number; largest: boolean }> = {
  op: 'TopK',
  types: [NUMBERS, HOST],
  attributes: (given) => ({ axis: given.integer('axis', -1), largest: given.integer('largest', 1) !== 0 }),
  resolve(ctx, { axis: givenAxis, largest }) {
    const x = ctx.input(0);
    const axis = normalizeAxis(givenAxis, x.dims.length);
    const k = ctx.data(1)?.[0] ?? 0;
    const n = x.dims[axis];
    if (k < 0 || k > n) throw new KernelError(`TopK: ${k} of the ${n} elements along axis ${axis} of [${x.dims}]`);
    const dims = x.dims.map((dim, other) => (other === axis ? k : dim));
    const values = ctx.output(0, dims);
    const indices = ctx.output(1, dims, DType.int64);
    if (values.size === 0) return;
    topK(
      ctx,
      { x, outer: sizeOf(x.dims.slice(0, axis)), n, inner: sizeOf(x.dims.slice(axis + 1)) },
      k,
      largest,
      values,
      indices,
    );
  },
};

export default [kernel];
