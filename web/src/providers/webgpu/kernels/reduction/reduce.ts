// The Reduce operators: each is a row of this table; all use one shader.
// The input is walked as outputs x steps. Long reductions to few outputs have two stages, parts of the steps first.
import type { Attributes } from '../../../../contract/attributes';
import { typeName } from '../../../../contract/elements';
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
  ALL,
  broadcastStrides,
  computeType,
  FLOATS,
  foldWalk,
  HOST,
  inLanes,
  integerRange,
  laneAliases,
  type Lanes,
  laneType,
  load,
  type MathName,
  mathFunctions,
  narrowType,
  normalizeAxes,
  NUMBERS,
  partsOf,
  sizeOf,
  stored,
  teamMain,
  teamSize,
  teamWorkgroups,
  type Walk,
  walkIndices,
  walkUniforms,
  wideWalk,
  wrapped,
} from '../../wgsl';

/** Elements that are computed four at a time: neighboring outputs, neighboring steps of one, or none. */
export type Wide = 'outputs' | 'steps' | 'none';

export type Combination = 'sum' | 'product' | 'max' | 'min';

export interface Reduction {
  readonly op: string;
  readonly combine: Combination;
  /** Maps an element x before it is combined. */
  readonly map?: string;
  /** Maps the combined value r at the end. u.length elements were combined. */
  readonly finish?: string;
  /** True if map and finish use the largest element of each output, `peak`. */
  readonly peak?: boolean;
  readonly types?: Kernel['types'][number];
}

/** An element, or 0 in place of a NaN. */
const NUMBER = 'select(x, T(0), is_nan(x))';
/** The largest element, or 0 if there is no finite one. */
const PEAK = { combine: 'max', map: NUMBER, finish: 'select(r, T(0), abs(r) > T(3e38))' } as const;

const TABLE: readonly Reduction[] = [
  { op: 'ReduceSum', combine: 'sum' },
  { op: 'ReduceMean', combine: 'sum', finish: 'r / T(u.length)' },
  { op: 'ReduceMax', combine: 'max', types: ALL },
  { op: 'ReduceMin', combine: 'min', types: ALL },
  { op: 'ReduceProd', combine: 'product' },
  { op: 'ReduceL1', combine: 'sum', map: 'abs(x)' },
  { op: 'ReduceL2', combine: 'sum', map: 'x * x', finish: 'T(sqrt(F(r)))' },
  { op: 'ReduceSumSquare', combine: 'sum', map: 'x * x' },
  { op: 'ReduceLogSum', combine: 'sum', finish: 'T(log_(F(r)))' },
  // The sum of e^x might overflow; the sum of e^(x - peak) does not.
  {
    op: 'ReduceLogSumExp',
    combine: 'sum',
    map: 'T(exp_(F(x) - F(peak)))',
    finish: 'T(log_(F(r)) + F(peak))',
    peak: true,
    types: FLOATS,
  },
];

/** Combines two values, with the initial value. */
export const COMBINE = {
  sum: { two: 'a + b', start: 'T(0)', floatStart: 'T(bitcast<f32>(0x80000000u))' }, // the sum of -0 and -0 is -0
  product: { two: 'a * b', start: 'T(1)', floatStart: 'T(1)' },
  max: { two: 'max(a, b)', start: 'T(u.least)', floatStart: 'T(-infinity())' },
  min: { two: 'min(a, b)', start: 'T(u.most)', floatStart: 'T(infinity())' },
} as const;

interface ReduceSpec extends Spec {
  readonly combine: Combination;
  readonly map?: string;
  readonly finish?: string;
  readonly peak?: boolean;
  readonly from: StorageType;
  readonly to: StorageType;
  readonly wrap?: DType;
  /** True if there are no steps: an empty sum is +0. */
  readonly empty?: boolean;
  /** Ranks of the walk over the outputs, and of the walk over the steps of one. */
  readonly outer: number;
  readonly inner: number;
  /** Elements that are read four at a time. */
  readonly wide: Wide;
  readonly team: number;
}

const REDUCE: Shader<ReduceSpec> = {
  name: 'reduce',
  wgsl({ combine, map = 'x', finish, peak, from, to, wrap, empty, outer, inner, wide, team }) {
    const type = computeType(from);
    const float = type === 'f32';
    const lanes: Lanes = wide === 'outputs' ? 4 : 1;
    const { two, start, floatStart } = COMBINE[combine];
    const ordered = combine === 'max' || combine === 'min';
    const math: MathName[] = [
      ...(float ? (['infinity', 'is_nan'] as const) : []),
      ...(finish?.includes('log_') ? (['log_'] as const) : []),
      ...(map.includes('exp_') ? (['exp_'] as const) : []),
    ];
    const value = load(from, wide === 'none' ? 1 : 4, 'x[at_outer + at_inner]');
    const elements = wide === 'steps' ? ['v.x', 'v.y', 'v.z', 'v.w'] : ['v'];
    const peakOf = peak ? ', peak' : '';
    const result = finish ? `finish(acc${peakOf})` : 'acc';
    return `${laneAliases(lanes)} alias T = ${laneType(type, lanes)};
${mathFunctions(...math)}
fn combine(a: T, b: T) -> T { return ${float && ordered ? `select(${two}, a + b, is_nan(a) | is_nan(b))` : two}; }
fn map(x: T${peak ? ', peak: T' : ''}) -> T { return ${map}; }
${finish ? `fn finish(r: T${peak ? ', peak: T' : ''}) -> T { return ${finish}; }` : ''}
${teamMain({
  team,
  neighbors: wide === 'outputs',
  accumulators: [{ name: 'acc', type: 'T', start: float && !(empty && combine === 'sum') ? floatStart : start }],
  prepare: `  let part = o / u.outputs;
  let output = o % u.outputs;
  let first = part * u.part_steps;
  let end = min(first + u.part_steps, u.steps);
${peak ? '  let peak = peaks[output];' : ''}
${walkIndices(outer, ['outer'], { from: 'output', prefix: 'outer_' })}`,
  step: `${walkIndices(inner, ['inner'], { from: 'r', prefix: 'inner_' })}
    let v = ${value};
${elements.map((element) => `    acc = combine(acc, map(${element}${peakOf}));`).join('\n')}`,
  merge: '      acc = combine(acc, other_acc);',
  finish: `    y[o] = ${stored(to, lanes, wrapped(wrap, result))};`,
})}`;
  },
};

interface Walks {
  readonly outer: Walk;
  readonly inner: Walk;
  readonly wide: Wide;
  /** For each input. */
  readonly own: readonly boolean[];
}

/**
 * The walks over outputs and steps of a tensor of size `dims`, in elements of each input; in vectors for inputs that
 * are read four at a time.
 */
export function walksOf(
  shapes: readonly (readonly number[])[],
  dims: readonly number[],
  axes: readonly number[],
): Walks {
  const strides = shapes.map((shape) => broadcastStrides(shape, dims));
  const every = dims.map((_, axis) => axis);
  const along = (chosen: readonly number[]) =>
    foldWalk({
      dims: chosen.map((axis) => dims[axis]),
      strides: strides.map((steps) => chosen.map((axis) => steps[axis])),
    });
  const outer = along(every.filter((axis) => !axes.includes(axis)));
  const inner = along(every.filter((axis) => axes.includes(axis)));
  for (const [wide, walk, other] of [
    ['outputs', outer, inner],
    ['steps', inner, outer],
  ] as const) {
    const fours = wideWalk(walk, 4);
    if (!fours?.wide.includes(true)) continue;
    const strides = other.strides.map((steps, k) => (fours.wide[k] ? steps.map((step) => step / 4) : steps));
    if (!strides.flat().every(Number.isInteger)) continue;
    const rest = { dims: other.dims, strides };
    return {
      outer: wide === 'outputs' ? fours.walk : rest,
      inner: wide === 'outputs' ? rest : fours.walk,
      wide,
      own: fours.wide,
    };
  }
  return { outer, inner, wide: 'none', own: shapes.map(() => true) };
}

const COMPUTE_DTYPE = { f32: DType.float32, i32: DType.int32, u32: DType.uint32 } as const;

/** y = the reduction of x along `axes`. */
function reduce(ctx: Context, reduction: Omit<Reduction, 'op'>, x: Tensor, axes: readonly number[], y: Tensor): void {
  if (y.size === 0) return;
  const peaks = reduction.peak ? ctx.temp(y.dims, DType.float32) : undefined;
  if (peaks) reduce(ctx, PEAK, x, axes, peaks);
  stage(ctx, reduction, x, axes, y, sizeOf(axes.map((axis) => x.dims[axis])), peaks);
}

/** The row of the table for a Reduce operator. */
export function reductionOf(op: string): Reduction | undefined {
  return TABLE.find((reduction) => reduction.op === op);
}

/**
 * The rest of a reduction after another kernel's first dispatch: y from `parts`, float32 [parts, y.size]. `length`:
 * elements per output.
 */
export function finishParts(
  ctx: Context,
  { combine, finish }: Reduction,
  parts: Tensor,
  y: Tensor,
  length: number,
): void {
  stage(ctx, { combine, finish }, parts, [0], y, length, undefined);
}

/** For kernels that compute means themselves: y, of any float type, is the mean of x along `axes`. */
export function reduceMeanOf(ctx: Context, x: Tensor, axes: readonly number[], y: Tensor): void {
  reduce(ctx, TABLE.find(({ op }) => op === 'ReduceMean')!, x, axes, y);
}

/** The same for sums. */
export function reduceSumOf(ctx: Context, x: Tensor, axes: readonly number[], y: Tensor): void {
  reduce(ctx, TABLE.find(({ op }) => op === 'ReduceSum')!, x, axes, y);
}

/**
 * One dispatch, or one that reduces to parts and another stage that combines the parts. `length`: elements per output.
 */
function stage(
  ctx: Context,
  { combine, map, finish, peak }: Omit<Reduction, 'op'>,
  x: Tensor,
  axes: readonly number[],
  y: Tensor,
  length: number,
  peaks: Tensor | undefined,
): void {
  const { outer, inner, wide } = walksOf([x.dims], x.dims, axes);
  const outputs = sizeOf(outer.dims);
  const steps = sizeOf(inner.dims);
  const team = teamSize(outputs, steps, ctx.device);
  const parts = partsOf(outputs, steps, team, ctx.device);
  const last = parts === 1;
  const type = computeType(x.storage);
  const target = last ? y : ctx.temp([parts, y.size], COMPUTE_DTYPE[type]);
  const lanes = wide === 'outputs' ? 4 : 1;
  const [least, most] = type === 'f32' ? [0, 0] : integerRange(x.dtype);
  const typed = ['length', 'least', 'most'];
  ctx.dispatch<ReduceSpec>({
    shader: REDUCE,
    spec: {
      combine,
      map,
      finish: last ? finish : undefined,
      peak,
      from: x.storage,
      to: target.storage,
      wrap: last ? narrowType(y.dtype) : undefined,
      ...(steps === 0 && { empty: true }),
      outer: outer.dims.length,
      inner: inner.dims.length,
      wide,
      team,
    },
    inputs: { x: inLanes(x, wide === 'none' ? 1 : 4), ...(peaks ? { peaks: inLanes(peaks, lanes) } : {}) },
    outputs: { y: inLanes(target, lanes) },
    uniforms: {
      count: outputs * parts,
      outputs,
      steps,
      part_steps: Math.ceil(steps / parts),
      length,
      least,
      most,
      ...walkUniforms(outer, ['outer'], 'outer_'),
      ...walkUniforms(inner, ['inner'], 'inner_'),
    },
    f32: type === 'f32' ? typed : [],
    i32: type === 'i32' ? typed : [],
    workgroups: teamWorkgroups(outputs * parts, team, ctx.device),
  });
  if (!last) stage(ctx, { combine, finish, peak }, target, [0], y, length, peaks);
}

interface ReduceAttributes {
  readonly keepdims: boolean;
  readonly noAxesIsNone: boolean;
}

function reduceKernel(reduction: Reduction): Kernel<ReduceAttributes> {
  return {
    op: reduction.op,
    types: [reduction.types ?? NUMBERS, HOST],
    attributes: (given: Attributes) => ({
      keepdims: given.integer('keepdims', 1) !== 0,
      noAxesIsNone: given.integer('noop_with_empty_axes', 0) !== 0,
    }),
    resolve(ctx, { keepdims, noAxesIsNone }) {
      const x = ctx.input(0);
      const given = ctx.data(1) ?? [];
      const none = given.length === 0 && noAxesIsNone;
      // For one element L1 is its magnitude, LogSum its logarithm; LogSumExp, and reductions without map or finish,
      // leave it unchanged.
      const same = reduction.peak || reduction.op === 'ReduceMean' || !(reduction.map || reduction.finish);
      if (none && same) return ctx.view(0, x, x.dims);
      const every = x.dims.map((_, axis) => axis);
      const axes = given.length > 0 ? normalizeAxes(given, x.dims.length) : none ? [] : every;
      const dims = keepdims
        ? x.dims.map((dim, axis) => (axes.includes(axis) ? 1 : dim))
        : x.dims.filter((_, axis) => !axes.includes(axis));
      const y = ctx.output(0, dims);
      const ordered = reduction.combine === 'max' || reduction.combine === 'min';
      if (ordered && x.size === 0 && y.size > 0 && (x.dtype === DType.int64 || x.dtype === DType.uint64)) {
        throw new KernelError(
          `${reduction.op} of [${x.dims}]: of no elements it is the limit of ${typeName(x.dtype)}, ` +
            `which the 32 bits of integers on the GPU do not hold; ` +
            'fix the shapes of the inputs, or run this model on the wasm provider',
        );
      }
      reduce(ctx, reduction, x, axes, y);
    },
  };
}

export default TABLE.map(reduceKernel);
