// ScatterElements and ScatterND. One thread combines updates of the same place, in their order: no atomics, any dtype,
// the same sum each time. An update whose index is out of range has no effect.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import type { DType } from '../../../../schema';
import {
  ALL,
  computeType,
  foldWalk,
  INDEX_WGSL,
  INDICES,
  laneAliases,
  linearMain,
  linearWorkgroups,
  load,
  narrowType,
  normalizeAxis,
  sizeOf,
  stored,
  stridedCopy,
  stridesOf,
  walkIndices,
  walkUniforms,
  wrapped,
} from '../../wgsl';

/** Combines the existing value `a` with the update `b`. */
const COMBINE = { none: 'b', add: 'a + b', mul: 'a * b', min: 'min(a, b)', max: 'max(a, b)' } as const;
type Reduction = keyof typeof COMBINE;

export interface ScatterSpec extends Spec {
  readonly reduction: Reduction;
  readonly type: StorageType;
  readonly wrap?: DType;
  readonly rank: number;
}

/** WGSL of combine(in place, update). */
export function combine({ reduction, type, wrap }: ScatterSpec): string {
  const wraps = reduction === 'add' || reduction === 'mul' ? wrap : undefined;
  return `${laneAliases(1)} alias T = ${computeType(type)};
fn combine(a: T, b: T) -> T { return ${wrapped(wraps, COMBINE[reduction])}; }`;
}

/** Combines y[at] with an element of the updates. */
function update(type: StorageType, at: string, from: string): string {
  return `y[${at}] = ${stored(
    type,
    1,
    `combine(${load(type, 1, `y[${at}]`)}, ${load(type, 1, `updates[${from}]`)})`,
  )};`;
}

// A thread applies a column of updates along the axis: columns have no place in common.
const SCATTER_ELEMENTS: Shader<ScatterSpec> = {
  name: 'scatter_elements',
  wgsl: (spec) =>
    `${combine(spec)}\n${INDEX_WGSL}${linearMain(`${walkIndices(spec.rank, ['x', 'indices'])}
  for (var k = 0u; k < u.steps; k++) {
    let from_at = at_indices + k * u.indices_stride;
    let index = i32(indices[from_at]);
    if (is_outside(index, u.dim)) { continue; }
    let at = at_x + index_within(index, u.dim) * u.stride;
    ${update(spec.type, 'at', 'from_at')}
  }`)}`,
};

export interface ScatterAttributes {
  readonly axis: number;
  readonly reduction: Reduction;
}

function reductionOf(name: string): Reduction {
  if (!(name in COMBINE)) throw new KernelError(`there is no reduction "${name}" for a scatter`);
  return name as Reduction;
}

/** The destination of the updates: a copy of x, or x itself if the result is bound to its buffer. */
function targetOf(ctx: Context, x: Tensor): Tensor {
  if (ctx.boundInPlace(0, 0)) {
    ctx.view(0, x, x.dims);
    return x;
  }
  const y = ctx.output(0, x.dims);
  stridedCopy(ctx, x, { strides: [1] }, y, { strides: [1] }, [x.size]);
  return y;
}

export const scatterElements: Kernel<ScatterAttributes> = {
  op: 'ScatterElements',
  types: [ALL, INDICES, ALL],
  attributes: (given) => ({ axis: given.integer('axis', 0), reduction: reductionOf(given.text('reduction', 'none')) }),
  resolve(ctx, { axis: givenAxis, reduction }) {
    const [x, indices, updates] = [ctx.input(0), ctx.input(1), ctx.input(2)];
    const axis = normalizeAxis(givenAxis, x.dims.length);
    if (indices.dims.length !== x.dims.length || indices.dims.some((dim, k) => dim !== updates.dims[k])) {
      throw new KernelError(
        `ScatterElements: indices [${indices.dims}] and updates [${updates.dims}] must have one shape, ` +
          `of the rank of [${x.dims}]`,
      );
    }
    const y = targetOf(ctx, x);
    if (indices.size === 0) return;
    const [strides, indexStrides] = [stridesOf(x.dims), stridesOf(indices.dims)];
    const columns = indices.dims.map((dim, k) => (k === axis ? 1 : dim));
    const walk = foldWalk({ dims: columns, strides: [strides, indexStrides] });
    const count = sizeOf(columns);
    ctx.dispatch<ScatterSpec>({
      shader: SCATTER_ELEMENTS,
      spec: { reduction, type: x.storage, wrap: narrowType(x.dtype), rank: walk.dims.length },
      inputs: { indices, updates },
      outputs: { y },
      uniforms: {
        count,
        steps: indices.dims[axis],
        dim: x.dims[axis],
        stride: strides[axis],
        indices_stride: indexStrides[axis],
        ...walkUniforms(walk, ['x', 'indices']),
      },
      workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

// The thread of element `i` of a slice walks all tuples of indices; u.tuples of them, or one if no two are the same
// place.
const SCATTER_ND: Shader<ScatterSpec> = {
  name: 'scatter_nd',
  wgsl(spec) {
    const depth = spec.rank;
    const steps = Array.from(
      { length: depth },
      (_, k) => `    let index_${k} = i32(indices[tuple * ${depth}u + ${k}u]);
    if (is_outside(index_${k}, u.dims_${k})) { continue; }
    at += index_within(index_${k}, u.dims_${k}) * u.strides_${k};`,
    );
    return `${combine(spec)}\n${INDEX_WGSL}${linearMain(`  let element = i % u.slice;
  let first = i / u.slice * u.tuples;
  for (var tuple = first; tuple < first + u.tuples; tuple++) {
    var at = element;
${steps.join('\n')}
    ${update(spec.type, 'at', 'tuple * u.slice + element')}
  }`)}`;
  },
};

export const scatterND: Kernel<Reduction> = {
  op: 'ScatterND',
  types: [ALL, INDICES, ALL],
  attributes: (given) => reductionOf(given.text('reduction', 'none')),
  resolve(ctx, reduction) {
    const [x, indices, updates] = [ctx.input(0), ctx.input(1), ctx.input(2)];
    const depth = indices.dims.at(-1) ?? 0;
    if (indices.dims.length === 0 || depth > x.dims.length)
      throw new KernelError(`ScatterND: indices [${indices.dims}] name more axes than [${x.dims}] has`);
    const y = targetOf(ctx, x);
    if (updates.size === 0 || y.size === 0) return;
    const slice = sizeOf(x.dims.slice(depth));
    const tuples = sizeOf(indices.dims.slice(0, -1));
    // Without a reduction ONNX forbids repeated indices.
    const each = reduction === 'none' ? 1 : tuples;
    const count = slice * (tuples / each);
    ctx.dispatch<ScatterSpec>({
      shader: SCATTER_ND,
      spec: { reduction, type: x.storage, wrap: narrowType(x.dtype), rank: depth },
      inputs: { indices, updates },
      outputs: { y },
      uniforms: {
        count,
        slice,
        tuples: each,
        dims: x.dims.slice(0, depth),
        strides: stridesOf(x.dims).slice(0, depth),
      },
      workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

export default [scatterElements, scatterND];
