// An elementwise program and the reduction of its results, in one dispatch, without a tensor in between. The results
// are walked as outputs x steps, as in reduce.ts, which also joins the parts of a long reduction to few outputs.
import type { DType } from '../../../../../schema';
import { DType as DTypes } from '../../../../../schema';
import {
  type Context,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../../contract/kernel';
import {
  broadcastDims,
  computeType,
  inLanes,
  laneAliases,
  type Lanes,
  laneType,
  load,
  normalizeAxes,
  partsOf,
  sizeOf,
  stored,
  teamMain,
  teamSize,
  teamWorkgroups,
  walkIndices,
  walkUniforms,
} from '../../../wgsl';
import { COMBINE, type Combination, finishParts, reductionOf, walksOf, type Wide } from '../../reduction/reduce';
import { type Instruction, type Program, programFunctions } from '../../../wgsl/program';

interface ReducedSpec extends Spec {
  readonly program: readonly Instruction[];
  /** The program that runs on the reduced values. */
  readonly after?: readonly Instruction[];
  /**
   * `wide`: true if the input is read four elements at a time, like the program's results; otherwise one element serves
   * all lanes.
   */
  readonly operands: readonly { readonly storage: StorageType; readonly wide: boolean }[];
  readonly combine: Combination;
  readonly map?: string;
  readonly finish?: string;
  readonly to: StorageType;
  /** Ranks of the walk over the outputs, and of the walk over the steps of one. */
  readonly outer: number;
  readonly inner: number;
  readonly wide: Wide;
  readonly team: number;
}

const REDUCED: Shader<ReducedSpec> = {
  name: 'elementwise_chain__reduced',
  wgsl({ program, after, operands, combine, map = 'x', finish = 'r', to, outer, inner, wide, team }) {
    const lanes: Lanes = wide === 'none' ? 1 : 4;
    const { two, floatStart } = COMBINE[combine];
    const ordered = combine === 'max' || combine === 'min';
    const indices = (walk: string) => operands.map((_, i) => `x${i}_${walk}`);
    const values = operands.map(({ storage, wide: own }, i) => {
      const value = load(storage, own ? lanes : 1, `x${i}[at_x${i}_outer + at_x${i}_inner]`);
      return own || lanes === 1 ? value : `${laneType(computeType(storage), lanes)}(${value})`;
    });
    const across = 'combine(combine(T(acc.x), T(acc.y)), combine(T(acc.z), T(acc.w)))';
    const finished = `finish(${wide === 'steps' ? across : 'acc'})`;
    const result = `${after ? `after(${finished})` : finished}${wide === 'steps' ? '.x' : ''}`;
    const functions = [
      { name: 'apply', program, inputs: operands.map((_, i) => `T_x${i}`), result: 'R' },
      ...(after ? [{ name: 'after', program: after, inputs: ['T'], result: 'T' }] : []),
    ];
    return `${laneAliases(lanes)} alias T = F; alias R = F;
      ${operands.map(({ storage }, i) => `alias T_x${i} = ${laneType(computeType(storage), lanes)};`).join(' ')}
${programFunctions(functions, ['infinity', 'is_nan', ...(finish.includes('log_') ? (['log_'] as const) : [])])}
fn combine(a: T, b: T) -> T { return ${ordered ? `select(${two}, a + b, is_nan(a) | is_nan(b))` : two}; }
fn map(x: T) -> T { return ${map}; }
fn finish(r: T) -> T { return ${finish}; }
${teamMain({
  team,
  neighbors: wide === 'outputs',
  accumulators: [{ name: 'acc', type: 'T', start: floatStart }],
  prepare: `  let part = o / u.outputs;
  let output = o % u.outputs;
  let first = part * u.part_steps;
  let end = min(first + u.part_steps, u.steps);
${walkIndices(outer, indices('outer'), { from: 'output', prefix: 'outer_' })}`,
  step: `${walkIndices(inner, indices('inner'), { from: 'r', prefix: 'inner_' })}
    acc = combine(acc, map(apply(${values.join(', ')})));`,
  merge: '      acc = combine(acc, other_acc);',
  finish: `    y[o] = ${stored(to, wide === 'outputs' ? 4 : 1, result)};`,
})}`;
  },
};

/** The reduction of a program's results. */
export interface Reduction {
  /** A Reduce operator. */
  readonly op: string;
  readonly axes: readonly number[];
  readonly keepdims: boolean;
  /** The program on the reduced values, with one input. */
  readonly finish?: Program;
}

/** Output 0 is the reduction of the program's results on `inputs`. `compute`: y = the program of x. */
export function reduceProgram(
  ctx: Context,
  { instructions, numbers }: Program,
  { op, axes: given, keepdims, finish: after }: Reduction,
  inputs: readonly Tensor[],
  dtype: DType,
  compute: (program: Program, x: Tensor, y: Tensor) => void,
): void {
  const found = reductionOf(op);
  if (!found || found.peak) throw new KernelError(`ElementwiseChain with ${op}`, true);
  const { combine, map, finish } = found;
  const dims = broadcastDims(...inputs.map((input) => input.dims));
  const axes = normalizeAxes(given, dims.length);
  const y = ctx.output(
    0,
    keepdims
      ? dims.map((dim, axis) => (axes.includes(axis) ? 1 : dim))
      : dims.filter((_, axis) => !axes.includes(axis)),
    dtype,
  );
  if (y.size === 0) return;
  const { outer, inner, wide, own } = walksOf(
    inputs.map((input) => input.dims),
    dims,
    axes,
  );
  const [outputs, steps] = [sizeOf(outer.dims), sizeOf(inner.dims)];
  const team = teamSize(outputs, steps, ctx.device);
  const parts = partsOf(outputs, steps, team, ctx.device);
  const last = parts === 1;
  const target = last ? y : ctx.temp([parts, y.size], DTypes.float32);
  const all = [...numbers, ...(last && after ? after.numbers : [])];
  const length = sizeOf(axes.map((axis) => dims[axis]));
  const names = (walk: string) => inputs.map((_, i) => `x${i}_${walk}`);
  ctx.dispatch<ReducedSpec>({
    shader: REDUCED,
    spec: {
      program: instructions,
      after: last ? after?.instructions : undefined,
      operands: inputs.map(({ storage }, i) => ({ storage, wide: own[i] })),
      combine,
      map,
      finish: last ? finish : undefined,
      to: target.storage,
      outer: outer.dims.length,
      inner: inner.dims.length,
      wide,
      team,
    },
    inputs: Object.fromEntries(inputs.map((input, i) => [`x${i}`, inLanes(input, own[i] && wide !== 'none' ? 4 : 1)])),
    outputs: { y: inLanes(target, wide === 'outputs' ? 4 : 1) },
    uniforms: {
      count: outputs * parts,
      outputs,
      steps,
      part_steps: Math.ceil(steps / parts),
      length,
      ...(all.length > 0 ? { number: all } : {}),
      ...walkUniforms(outer, names('outer'), 'outer_'),
      ...walkUniforms(inner, names('inner'), 'inner_'),
    },
    f32: ['length', 'number'],
    workgroups: teamWorkgroups(outputs * parts, team, ctx.device),
  });
  if (last) return;
  const reduced = after ? ctx.temp(y.dims, DTypes.float32) : y;
  finishParts(ctx, found, target, reduced, length);
  if (after) compute(after, reduced, y);
}
