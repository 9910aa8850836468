// ScatterElements and ScatterND, the other way round: each element looks for the updates that go to it, in their order.
import { type Context, type Kernel, KernelError, type Shader, type Tensor } from '../../../contract/kernel';
import { normalizeAxis, sizeOf, stridesOf } from '../../../contract/shape';
import { INDEX_WGSL, linearMain, linearWorkgroups, load, narrowType, stored } from '../../webgpu/wgsl';
import { checkReads } from '../../webgpu/kernels/shared/reads';
import { combine, scatterElements, scatterND, type ScatterSpec } from '../../webgpu/kernels/gathering/scatter';

/** Takes an update into `value`. */
const take = ({ type }: ScatterSpec, from: string) => `value = combine(value, ${load(type, 1, `updates[${from}]`)});`;

function main(spec: ScatterSpec, body: string): string {
  return `${combine(spec)}\n${INDEX_WGSL}${linearMain(`  var value = ${load(spec.type, 1, 'x[i]')};
${body}
  y[i] = ${stored(spec.type, 1, 'value')};`)}`;
}

const ELEMENTS: Shader<ScatterSpec> = {
  name: 'scatter_elements__own',
  wgsl(spec) {
    const axes = Array.from({ length: spec.rank }, (_, axis) => spec.rank - 1 - axis);
    const places = axes.map(
      (axis) => `let place_${axis} = rest % u.dims_${axis}; rest = rest / u.dims_${axis};
  if (${axis}u != u.axis) { inside = inside & (place_${axis} < u.index_dims_${axis});
    first += place_${axis} * u.index_strides_${axis}; } else { mine = place_${axis}; }`,
    );
    return main(
      spec,
      `  var rest = i; var inside = true; var first = 0u; var mine = 0u;
  ${places.join('\n  ')}
  if (inside) { for (var k = 0u; k < u.steps; k++) {
    let from_at = first + k * u.step;
    let index = i32(indices[from_at]);
    if (is_outside(index, u.dim) || index_within(index, u.dim) != mine) { continue; }
    ${take(spec, 'from_at')}
  } }`,
    );
  },
};

/** spec.rank: how many axes a tuple of indices names. */
const TUPLES: Shader<ScatterSpec> = {
  name: 'scatter_nd__own',
  wgsl(spec) {
    const steps = Array.from(
      { length: spec.rank },
      (_, k) => `    let index_${k} = i32(indices[tuple * ${spec.rank}u + ${k}u]);
    if (is_outside(index_${k}, u.dims_${k})) { continue; }
    at += index_within(index_${k}, u.dims_${k}) * u.strides_${k};`,
    );
    return main(
      spec,
      `  for (var tuple = 0u; tuple < u.tuples; tuple++) {
    var at = 0u;
${steps.join('\n')}
    if (at != i / u.slice) { continue; }
    ${take(spec, 'tuple * u.slice + i % u.slice')}
  }`,
    );
  },
};

function dispatch(ctx: Context, shader: Shader<ScatterSpec>, spec: ScatterSpec, uniforms: object, steps: number): void {
  const [x, indices, updates] = [ctx.input(0), ctx.input(1), ctx.input(2)];
  if (updates.size === 0 || x.size === 0) return ctx.view(0, x, x.dims);
  checkReads(ctx, shader === TUPLES ? scatterND.op : scatterElements.op, x.size, steps);
  ctx.dispatch({
    shader,
    spec,
    inputs: { x, indices, updates },
    outputs: { y: ctx.output(0, x.dims) },
    uniforms: { count: x.size, ...uniforms },
    workgroups: linearWorkgroups(x.size, ctx.device),
    iterations: steps,
  });
}

const specOf = (x: Tensor, reduction: ScatterSpec['reduction'], rank: number): ScatterSpec => ({
  reduction,
  type: x.storage,
  wrap: narrowType(x.dtype),
  rank,
});

export default [
  {
    ...scatterElements,
    resolve(ctx, { axis: given, reduction }) {
      const [x, indices, updates] = [ctx.input(0), ctx.input(1), ctx.input(2)];
      const axis = normalizeAxis(given, x.dims.length);
      if (indices.dims.length !== x.dims.length || `${indices.dims}` !== `${updates.dims}`)
        throw new KernelError(`ScatterElements of [${x.dims}]: indices [${indices.dims}], updates [${updates.dims}]`);
      const strides = stridesOf(indices.dims);
      const uniforms = {
        dims: x.dims,
        index_dims: indices.dims,
        index_strides: strides,
        axis,
        steps: indices.dims[axis],
        step: strides[axis],
        dim: x.dims[axis],
      };
      dispatch(ctx, ELEMENTS, specOf(x, reduction, x.dims.length), uniforms, indices.dims[axis]);
    },
  } satisfies typeof scatterElements,
  {
    ...scatterND,
    resolve(ctx, reduction) {
      const [x, indices] = [ctx.input(0), ctx.input(1)];
      const depth = indices.dims.at(-1) ?? 0;
      if (indices.dims.length === 0 || depth > x.dims.length)
        throw new KernelError(`ScatterND: indices [${indices.dims}] name more axes than [${x.dims}] has`);
      const slice = sizeOf(x.dims.slice(depth));
      const tuples = sizeOf(indices.dims.slice(0, -1));
      const dims = x.dims.slice(0, depth);
      const uniforms = { slice, tuples, dims, strides: stridesOf(dims) };
      dispatch(ctx, TUPLES, specOf(x, reduction, depth), uniforms, tuples);
    },
  } satisfies typeof scatterND,
] as readonly Kernel<never>[];
