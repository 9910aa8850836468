// Gather, GatherElements and GatherND. Negative indices count from the end; indices outside are clamped, so that no
// thread reads outside.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import {
  ALL,
  bindsWhole,
  foldWalk,
  inLanes,
  INDICES,
  INDEX_WGSL,
  type Lanes,
  linearMain,
  linearWorkgroups,
  normalizeAxis,
  partsAlong,
  sizeOf,
  stridesOf,
  walkIndices,
  walkUniforms,
} from '../../wgsl';

interface GatherSpec extends Spec {
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** True if x is only the rows from u.first on, u.rows of them: other threads do not write their outputs. */
  readonly partial: boolean;
}

// x is [outer, dim, inner], y is [outer, indices, inner]; inner counts vectors.
const GATHER: Shader<GatherSpec> = {
  name: 'gather',
  wgsl: ({ partial }) =>
    `${INDEX_WGSL}${linearMain(`  let column = i % u.inner;
  let rest = i / u.inner;
  let index = index_within(i32(indices[rest % u.indices_count]), u.dim)${
    partial ? ' - u.first;\n  if (index >= u.rows) { return; }' : ';'
  }
  y[i] = x[(rest / u.indices_count * u.dim + index) * u.inner + column];`)}`,
};

export const gather: Kernel<number> = {
  op: 'Gather',
  types: [ALL, INDICES],
  attributes: (given) => given.integer('axis', 0),
  resolve(ctx, givenAxis) {
    const [x, indices] = [ctx.input(0), ctx.input(1)];
    const axis = normalizeAxis(givenAxis, x.dims.length);
    const y = ctx.output(0, [...x.dims.slice(0, axis), ...indices.dims, ...x.dims.slice(axis + 1)]);
    if (y.size === 0) return;
    const dim = x.dims[axis];
    if (dim === 0) throw new KernelError(`Gather along axis ${axis} of [${x.dims}]: there is nothing to gather`);
    const inner = sizeOf(x.dims.slice(axis + 1));
    const lanes = inner % 4 === 0 ? 4 : 1;
    const whole = bindsWhole(x, ctx.device) && bindsWhole(y, ctx.device);
    const parts = whole ? undefined : gatherParts(ctx, x, indices, y, dim, inner);
    for (const { rows, first, chosen, part } of parts ?? [{ rows: x, first: 0, chosen: indices, part: y }]) {
      const count = part.size / lanes;
      ctx.dispatch({
        shader: GATHER,
        spec: { lanes, type: x.storage, partial: parts !== undefined },
        inputs: { x: inLanes(rows, lanes), indices: chosen },
        outputs: { y: inLanes(part, lanes) },
        uniforms: {
          count,
          inner: inner / lanes,
          dim,
          indices_count: chosen.size,
          ...(parts && { first, rows: rows.size / inner }),
        },
        workgroups: linearWorkgroups(count, ctx.device),
      });
    }
  },
};

/**
 * Rows of x and places of y that can be bound together; undefined if x has axes before that of the rows, or rows are
 * too long.
 */
function gatherParts(ctx: Context, x: Tensor, indices: Tensor, y: Tensor, dim: number, inner: number) {
  if (x.size !== dim * inner) return undefined;
  const rows = partsAlong(dim, [{ tensor: x, row: inner }], ctx.device);
  const places = partsAlong(
    indices.size,
    [
      { tensor: y, row: inner },
      { tensor: indices, row: 1 },
    ],
    ctx.device,
  );
  return (
    rows &&
    places?.flatMap(([begin, end]) =>
      rows.map(([first, last]) => ({
        rows: ctx.window(x, first * inner, [last - first, inner]),
        first,
        chosen: ctx.window(ctx.reshape(indices, [indices.size]), begin, [end - begin]),
        part: ctx.window(y, begin * inner, [end - begin, inner]),
      })),
    )
  );
}

interface ElementsSpec extends Spec {
  readonly rank: number;
  readonly type: StorageType;
}

// y[…, k, …] = x[…, indices[…, k, …], …]: x is walked in the shape of the indices, except along the axis of the index.
const GATHER_ELEMENTS: Shader<ElementsSpec> = {
  name: 'gather_elements',
  wgsl: ({ rank }) =>
    `${INDEX_WGSL}${linearMain(`${walkIndices(rank, ['x'])}
  y[i] = x[at_x + index_within(i32(indices[i]), u.dim) * u.stride];`)}`,
};

const gatherElements: Kernel<number> = {
  op: 'GatherElements',
  types: [ALL, INDICES],
  attributes: (given) => given.integer('axis', 0),
  resolve(ctx, givenAxis) {
    const [x, indices] = [ctx.input(0), ctx.input(1)];
    const axis = normalizeAxis(givenAxis, x.dims.length);
    if (indices.dims.length !== x.dims.length)
      throw new KernelError(`GatherElements: indices [${indices.dims}] and data [${x.dims}] differ in rank`);
    const y = ctx.output(0, indices.dims);
    const strides = stridesOf(x.dims);
    const walk = foldWalk({ dims: y.dims, strides: [strides.map((stride, k) => (k === axis ? 0 : stride))] });
    ctx.dispatch({
      shader: GATHER_ELEMENTS,
      spec: { rank: walk.dims.length, type: x.storage },
      inputs: { x, indices },
      outputs: { y },
      uniforms: { count: y.size, dim: x.dims[axis], stride: strides[axis], ...walkUniforms(walk, ['x']) },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

interface GatherNDSpec extends Spec {
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** Number of axes in an index. */
  readonly depth: number;
}

// An index of `depth` numbers selects a slice of u.slice vectors within its batch.
const GATHER_ND: Shader<GatherNDSpec> = {
  name: 'gather_nd',
  wgsl({ depth }) {
    const steps = Array.from(
      { length: depth },
      (_, k) => `  at += index_within(i32(indices[tuple * ${depth}u + ${k}u]), u.dims_${k}) * u.strides_${k};`,
    );
    return `${INDEX_WGSL}${linearMain(`  let tuple = i / u.slice;
  var at = tuple / u.tuples * u.batch + i % u.slice;
${steps.join('\n')}
  y[i] = x[at];`)}`;
  },
};

const gatherND: Kernel<number> = {
  op: 'GatherND',
  types: [ALL, INDICES],
  attributes: (given) => given.integer('batch_dims', 0),
  resolve(ctx, batchDims) {
    const [x, indices] = [ctx.input(0), ctx.input(1)];
    const depth = indices.dims.at(-1) ?? 0;
    const first = batchDims + depth;
    if (indices.dims.length === 0 || first > x.dims.length) {
      throw new KernelError(
        `GatherND: indices [${indices.dims}] name more axes than [${x.dims}] has after ${batchDims} batch axes`,
      );
    }
    const y = ctx.output(0, [...indices.dims.slice(0, -1), ...x.dims.slice(first)]);
    if (y.size === 0) return;
    const slice = sizeOf(x.dims.slice(first));
    const lanes = slice % 4 === 0 ? 4 : 1;
    const count = y.size / lanes;
    const tuples = sizeOf(indices.dims.slice(batchDims, -1));
    ctx.dispatch({
      shader: GATHER_ND,
      spec: { lanes, type: x.storage, depth },
      inputs: { x: inLanes(x, lanes), indices },
      outputs: { y: inLanes(y, lanes) },
      uniforms: {
        count,
        slice: slice / lanes,
        tuples,
        batch: sizeOf(x.dims.slice(batchDims)) / lanes,
        dims: x.dims.slice(batchDims, first),
        strides: stridesOf(x.dims)
          .slice(batchDims, first)
          .map((stride) => stride / lanes),
      },
      workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

export default [gather, gatherElements, gatherND];
