// Unique. The counting node sorts the rows and numbers the groups of equal ones; the second node cuts its results to
// their number.
import type { Context, Kernel, Shader, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { ALL, HOST, linearMain, linearWorkgroups, normalizeAxis, sizeOf, stridedCopy } from '../../wgsl';
import { gather } from '../gathering/gather';
import { COUNT, countOf } from './count';
import { rowBefore, type SortedRows, sortRows } from './sort';
import { prefixSums } from './sums';
import { Dialect } from '../../../../schema/dialect';

/** heads[p]: 1 if the row at place p is the first of its group, which is also the first of its rows in the tensor. */
const HEADS: Shader<{ readonly type: StorageType }> = {
  name: 'unique__heads',
  wgsl: ({ type }) =>
    `${rowBefore(type)}${linearMain(`  var head = true;
  if (i > 0u) { head = row_before(u32(order[i - 1u]), u32(order[i])); }
  heads[i] = i32(head);
  flags[u32(order[i])] = i32(head);`)}`,
};

/** The start of each group, in the order of the rows' contents. */
const BEGINS: Shader<Spec> = {
  name: 'unique__begins',
  wgsl: () => linearMain('  if (heads[i] != 0) { begins[u32(ranks[i])] = i32(i); }'),
};

// `ranks` counts the heads before a place; `numbers`, the heads before a row in the tensor.
const GROUPS: Shader<{ readonly sorted: boolean }> = {
  name: 'unique__groups',
  wgsl: ({ sorted }) =>
    linearMain(`  let own = u32(ranks[i] + heads[i] - 1);
  let begin = begins[own];
  let first = order[u32(begin)];
  let number = ${sorted ? 'i32(own)' : 'numbers[u32(first)]'};
  inverse[u32(order[i])] = number;
  if (heads[i] != 0) {
    firsts[u32(number)] = first;
    var end = i32(u.count);
    if (own + 1u < u32(total[0])) { end = begins[own + 1u]; }
    members[u32(number)] = end - begin;
  }`),
};

interface UniqueAttributes {
  readonly axis: number | undefined;
  readonly sorted: boolean;
}

const attributes: Kernel<UniqueAttributes>['attributes'] = (given) => ({
  axis: given.has('axis') ? given.integer('axis', 0) : undefined,
  sorted: given.integer('sorted', 1) !== 0,
});

/** Without an axis, elements are rows. */
function rowsOf(x: Tensor, given: number | undefined): { dims: readonly number[]; axis: number; rows: SortedRows } {
  const dims = given === undefined ? [x.size] : x.dims;
  const axis = normalizeAxis(given ?? 0, dims.length);
  return {
    dims,
    axis,
    rows: { x, outer: sizeOf(dims.slice(0, axis)), n: dims[axis], inner: sizeOf(dims.slice(axis + 1)) },
  };
}

function resolveCount(ctx: Context, { axis, sorted }: UniqueAttributes): void {
  const { rows } = rowsOf(ctx.input(0), axis);
  const { x, outer, n, inner } = rows;
  const [firsts, inverse, members] = [0, 1, 2].map((i) => ctx.output(i, [n], DType.int32));
  const total = ctx.output(3, COUNT, DType.int32);
  const [heads, flags, ranks, begins] = Array.from({ length: 4 }, () => ctx.temp([n], DType.int32));
  const order = n > 0 ? sortRows(ctx, rows) : ctx.temp([0], DType.int32);
  const each = { uniforms: { count: n }, workgroups: linearWorkgroups(n, ctx.device) };
  ctx.dispatch({
    shader: HEADS,
    spec: { type: x.storage },
    inputs: { x, order },
    outputs: { heads, flags },
    ...each,
    uniforms: { count: n, outer, n, inner },
  });
  prefixSums(ctx, heads, ranks, total);
  ctx.dispatch({ shader: BEGINS, spec: {}, inputs: { heads, ranks }, outputs: { begins }, ...each });
  const numbers = sorted ? undefined : ctx.temp([n], DType.int32);
  if (numbers) prefixSums(ctx, flags, numbers, ctx.temp(COUNT, DType.int32));
  ctx.dispatch({
    shader: GROUPS,
    spec: { sorted },
    inputs: { order, heads, ranks, begins, total, ...(numbers ? { numbers } : {}) },
    outputs: { firsts, inverse, members },
    ...each,
  });
}

/**
 * x, then the counting node's results: the first row of each group, the group of each row, the sizes of groups, their
 * number.
 */
function resolve(ctx: Context, { axis: given }: UniqueAttributes): void {
  const [x, firsts, inverse, members] = [0, 1, 2, 3].map((i) => ctx.input(i));
  const { dims, axis } = rowsOf(x, given);
  const found = countOf(ctx, 4);
  const cut = (source: Tensor, target: Tensor): void =>
    stridedCopy(ctx, source, { strides: [1] }, target, { strides: [1] }, [target.size]);
  const chosen = ctx.wants(1) ? ctx.output(1, [found], DType.int64) : ctx.temp([found], DType.int64);
  cut(firsts, chosen);
  if (ctx.wants(0))
    ctx.call(
      gather,
      axis,
      [ctx.reshape(x, dims), chosen],
      [
        ctx.output(
          0,
          dims.map((dim, k) => (k === axis ? found : dim)),
        ),
      ],
    );
  if (ctx.wants(2)) cut(inverse, ctx.output(2, inverse.dims, DType.int64));
  if (ctx.wants(3)) cut(members, ctx.output(3, [found], DType.int64));
}

export const uniqueKernels: Kernel[] = [
  {
    op: Dialect.UNIQUE_COUNT,
    domain: Dialect.INTERNAL_DOMAIN,
    types: [ALL],
    attributes,
    resolve: resolveCount,
  } as Kernel<UniqueAttributes> as Kernel,
  {
    op: 'Unique',
    types: [ALL, ['int32'], ['int32'], ['int32'], HOST],
    attributes,
    resolve,
  } as Kernel<UniqueAttributes> as Kernel,
];
