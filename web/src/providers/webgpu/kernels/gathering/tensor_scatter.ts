// TensorScatter: new rows written into a cache, at a place for each batch. If the result is bound to the cache's own
// buffer, only these rows are written.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { ALL, inLanes, INDICES, type Lanes, linearMain, linearWorkgroups, normalizeAxis, sizeOf } from '../../wgsl';

interface TensorScatterSpec extends Spec {
  readonly circular: boolean;
  /** True if there are indices; otherwise rows begin at 0. */
  readonly placed: boolean;
  readonly lanes: Lanes;
  readonly type: StorageType;
}

/** The place of the first row; a circular cache wraps around, at both ends. */
const first = ({ circular, placed }: TensorScatterSpec, outer: string): string => {
  const given = `places[${outer} / u.outer_of_batch]`;
  if (!placed) return '0u';
  return circular ? `u32((${given} % i32(u.length) + i32(u.length)) % i32(u.length))` : `u32(${given})`;
};

// The cache is [outer, length, inner], the update [outer, rows, inner]. Each element of the result checks if it is new.
const TENSOR_SCATTER: Shader<TensorScatterSpec> = {
  name: 'tensor_scatter',
  wgsl: (spec) =>
    linearMain(`  let column = i % u.inner;
  let place = i / u.inner % u.length;
  let outer = i / u.inner / u.length;
  let first = ${first(spec, 'outer')};
  let row = ${spec.circular ? '(place + u.length - first) % u.length' : 'place - first'};
  if (row < u.rows) { y[i] = update[(outer * u.rows + row) * u.inner + column]; } else { y[i] = x[i]; }`),
};

/** Each element of the update computes its place. */
const IN_PLACE: Shader<TensorScatterSpec> = {
  name: 'tensor_scatter_in_place',
  wgsl: (spec) =>
    linearMain(`  let column = i % u.inner;
  let outer = i / u.inner / u.rows;
  let place = ${first(spec, 'outer')} + i / u.inner % u.rows;
  ${spec.circular ? 'let row = place % u.length;' : 'if (place >= u.length) { return; } let row = place;'}
  y[(outer * u.length + row) * u.inner + column] = update[i];`),
};

const tensorScatter: Kernel<{ axis: number; circular: boolean }> = {
  op: 'TensorScatter',
  types: [ALL, ALL, INDICES],
  attributes: (given) => ({ axis: given.integer('axis', -2), circular: given.text('mode', 'linear') === 'circular' }),
  resolve(ctx, { axis: givenAxis, circular }) {
    const [x, update, places] = [ctx.input(0), ctx.input(1), ctx.inputs[2]];
    const axis = normalizeAxis(givenAxis, x.dims.length);
    if (
      axis === 0 ||
      update.dims.length !== x.dims.length ||
      update.dims.some((dim, k) => k !== axis && dim !== x.dims[k])
    ) {
      throw new KernelError(
        `TensorScatter: an update [${update.dims}] does not fit into the cache [${x.dims}] along axis ${givenAxis}`,
      );
    }
    const kept = ctx.boundInPlace(0, 0);
    if (kept) ctx.view(0, x, x.dims);
    const y = kept ? x : ctx.output(0, x.dims);
    const inner = sizeOf(x.dims.slice(axis + 1));
    const lanes = inner % 4 === 0 ? 4 : 1;
    const count = (kept ? update : y).size / lanes;
    ctx.dispatch({
      shader: kept ? IN_PLACE : TENSOR_SCATTER,
      spec: { circular, placed: places !== undefined, lanes, type: x.storage },
      inputs: {
        ...(kept ? {} : { x: inLanes(x, lanes) }),
        update: inLanes(update, lanes),
        ...(places ? { places } : {}),
      },
      outputs: { y: inLanes(y, lanes) },
      uniforms: {
        count,
        inner: inner / lanes,
        length: x.dims[axis],
        rows: update.dims[axis],
        outer_of_batch: sizeOf(x.dims.slice(1, axis)),
      },
      workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

export default [tensorScatter];
