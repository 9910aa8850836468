// TopK in two dispatches: the place of each element among those of its row, and the element of each place.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../contract/kernel';
import { normalizeAxis, sizeOf } from '../../../contract/shape';
import { DType } from '../../../schema';
import { computeType, HOST, linearMain, linearWorkgroups, load, NUMBERS, orderKey } from '../../webgpu/wgsl';
import { checkReads } from '../../webgpu/kernels/shared/reads';

interface PlaceSpec extends Spec {
  readonly largest: boolean;
  readonly type: StorageType;
}

/** Elements at equal places are told apart by their indices. Beyond u.k nobody looks. */
const PLACES: Shader<PlaceSpec> = {
  name: 'top_k__places',
  wgsl({ largest, type }) {
    const key = (at: string) => `${largest ? '' : '~'}key(${load(type, 1, `x[${at}]`)})`;
    return `${orderKey(computeType(type))}${linearMain(`  let element = i / u.inner % u.n;
  let row = i - element * u.inner;
  let mine = ${key('i')};
  var place = 0u;
  for (var other = 0u; other < u.n && place < u.k; other++) {
    let theirs = ${key('row + other * u.inner')};
    place += u32((theirs > mine) | ((theirs == mine) & (other < element)));
  }
  places[i] = place;`)}`;
  },
};

const CHOSEN: Shader<Spec> = {
  name: 'top_k__chosen',
  wgsl: () =>
    linearMain(`  let column = i % u.inner;
  let place = i / u.inner % u.k;
  let row = i / u.inner / u.k * u.n * u.inner + column;
  var element = 0u;
  for (var other = 0u; other < u.n; other++) {
    if (places[row + other * u.inner] == place) { element = other; break; }
  }
  values[i] = x[row + element * u.inner];
  indices[i] = i32(element);`),
};

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
    checkReads(ctx, kernel.op, x.size, n);
    const places = ctx.temp(x.dims, DType.uint32);
    const sizes = { n, k, inner: sizeOf(x.dims.slice(axis + 1)) };
    ctx.dispatch({
      shader: PLACES,
      spec: { largest, type: x.storage },
      inputs: { x },
      outputs: { places },
      uniforms: { count: x.size, ...sizes },
      workgroups: linearWorkgroups(x.size, ctx.device),
    });
    ctx.dispatch({
      shader: CHOSEN,
      spec: {},
      inputs: { x, places },
      outputs: { values, indices },
      uniforms: { count: values.size, ...sizes },
      workgroups: linearWorkgroups(values.size, ctx.device),
    });
  },
};

export default [kernel];
