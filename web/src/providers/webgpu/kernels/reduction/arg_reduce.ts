// ArgMax and ArgMin.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  ALL,
  computeType,
  laneAliases,
  load,
  mathFunctions,
  normalizeAxis,
  sizeOf,
  teamMain,
  teamSize,
  teamWorkgroups,
} from '../../wgsl';

interface ArgSpec extends Spec {
  readonly largest: boolean;
  readonly lastIndex: boolean;
  readonly type: StorageType;
  readonly team: number;
}

// x is [outer, steps, inner]; an output selects one step of each column of an outer block. NaN ranks above every
// number.
const ARG_REDUCE: Shader<ArgSpec> = {
  name: 'arg_reduce',
  wgsl({ largest, lastIndex, type, team }) {
    const float = computeType(type) === 'f32';
    const beats = `(a ${largest ? '>' : '<'} b)${float ? ' | (is_nan(a) & !is_nan(b))' : ''}`;
    const equal = `(a == b)${float ? ' | (is_nan(a) & is_nan(b))' : ''}`;
    return `${laneAliases(1)} alias T = ${computeType(type)};
${float ? mathFunctions('is_nan') : ''}
// True if value a at step p precedes value b at step q.
fn before(a: T, p: u32, b: T, q: u32) -> bool { return (${beats}) | ((${equal}) & (p ${lastIndex ? '>' : '<'} q)); }
${teamMain({
  team,
  neighbors: true,
  accumulators: [
    { name: 'best', type: 'T', start: 'x0' },
    { name: 'step', type: 'u32', start: '0u' },
  ],
  prepare: `  let base = o / u.inner * u.steps * u.inner + o % u.inner;
  let first = 0u;
  let end = u.steps;
  let x0: T = ${load(type, 1, 'x[base]')};`,
  step: `    let v = ${load(type, 1, 'x[base + r * u.inner]')};
    if (before(v, r, best, step)) { best = v; step = r; }`,
  merge: '      if (before(other_best, other_step, best, step)) { best = other_best; step = other_step; }',
  finish: '    y[o] = i32(step);',
})}`;
  },
};

interface ArgAttributes {
  readonly axis: number;
  readonly keepdims: boolean;
  readonly lastIndex: boolean;
}

function argKernel(op: string, largest: boolean): Kernel<ArgAttributes> {
  return {
    op,
    types: [ALL],
    attributes: (given) => ({
      axis: given.integer('axis', 0),
      keepdims: given.integer('keepdims', 1) !== 0,
      lastIndex: given.integer('select_last_index', 0) !== 0,
    }),
    resolve(ctx, { axis: givenAxis, keepdims, lastIndex }) {
      const x = ctx.input(0);
      const axis = normalizeAxis(givenAxis, x.dims.length);
      const dims = keepdims ? x.dims.map((dim, k) => (k === axis ? 1 : dim)) : x.dims.filter((_, k) => k !== axis);
      const y = ctx.output(0, dims, DType.int64);
      const steps = x.dims[axis];
      if (steps === 0 && y.size > 0)
        throw new KernelError(`${op} along axis ${axis} of [${x.dims}]: there is no element to choose`);
      const team = teamSize(y.size, steps, ctx.device);
      ctx.dispatch<ArgSpec>({
        shader: ARG_REDUCE,
        spec: { largest, lastIndex, type: x.storage, team },
        inputs: { x },
        outputs: { y },
        uniforms: { count: y.size, steps, inner: sizeOf(x.dims.slice(axis + 1)) },
        workgroups: teamWorkgroups(y.size, team, ctx.device),
      });
    },
  };
}

export default [argKernel('ArgMax', true), argKernel('ArgMin', false)];
