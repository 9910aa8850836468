// Kernels that read each row of a tensor several times: Softmax, the normalizations. A row is all elements along one
// axis (or several consecutive ones). A team of threads has each row; on software adapters a team of one, without
// barriers.
import type { Context, Dispatch, Spec, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { inLanes, type Lanes, laneType } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { mergeTeam, TEAM_THREADS, teamSize, teamWorkgroups } from '../../wgsl/team';

/** The places of rows in memory, and their threads. Part of a spec. */
export interface RowLayout {
  /** steps: 4 elements of a row at a time; rows: 4 rows at a time. */
  readonly wide: 'steps' | 'rows' | 'none';
  readonly team: number;
  /** True if each row is contiguous; otherwise, neighboring threads have neighboring rows. */
  readonly whole: boolean;
  /** True if no thread has more than one step of a row, which it then keeps. */
  readonly once: boolean;
  /**
   * If threads write only the element of their own index: the values kept of a row, by the dispatches that read or
   * write them.
   */
  readonly kept?: Kept;
  readonly stage?: 'rows' | 'elements';
}

/** Values of a row that phases compute and `write` reads: F, or K, the type of positions. */
export type Kept = { readonly [name: string]: 'F' | 'K' };

/** The tensor [outer, length, inner] as rows along its middle. */
export interface Rows {
  readonly layout: RowLayout;
  readonly lanes: Lanes;
  /** Uniforms that rowMain reads. */
  readonly uniforms: { readonly count: number; readonly steps: number; readonly inner: number };
  readonly workgroups: [number, number, number];
}

export function rowsOf(ctx: Context, outer: number, length: number, inner: number): Rows {
  const wide = inner === 1 ? (length % 4 === 0 ? 'steps' : 'none') : inner % 4 === 0 ? 'rows' : 'none';
  const steps = wide === 'steps' ? length / 4 : length;
  const within = wide === 'rows' ? inner / 4 : inner;
  const count = outer * within;
  const team = teamSize(count, steps, ctx.device);
  return {
    layout: { wide, team, whole: inner === 1, once: team > 1 && steps <= team },
    lanes: wide === 'none' ? 1 : 4,
    uniforms: { count, steps, inner: within },
    workgroups: teamWorkgroups(count, team, ctx.device),
  };
}

/** Product of the sizes before `axis`, of it, and of those after it. */
export function aroundAxis(x: Tensor, axis: number): [outer: number, length: number, inner: number] {
  const size = (dims: readonly number[]) => dims.reduce((product, dim) => product * dim, 1);
  return [size(x.dims.slice(0, axis)), x.dims[axis], size(x.dims.slice(axis + 1))];
}

/**
 * One pass over a row. F is the type of what is read at a time. R is the type of values of a row: F if there are 4 rows
 * at a time, otherwise a scalar.
 */
export interface RowPhase {
  /** The accumulated values: F, or K, the type of positions. */
  readonly accumulators: readonly { readonly name: string; readonly type: 'F' | 'K'; readonly start: string }[];
  /** Statements for the element `x: F` at position `k: K` (index `at` in units of F, step `step`). */
  readonly step: string;
  /** Statements that combine other_NAME into NAME, of types F and K without lanes of a row. */
  readonly merge: string;
  /** Statements after the whole row; their declarations stay in scope. */
  readonly after?: string;
}

export interface RowProgram {
  readonly layout: RowLayout;
  /** Statements that declare `x: F` from `at`, `step` and `row`. */
  readonly element: string;
  readonly phases: readonly RowPhase[];
  /** Statements for each element at the end, which write it. */
  readonly write?: string;
  /** Statements of the row alone, at the end (by one thread). */
  readonly finish?: string;
  /** Statements at the start. */
  readonly prepare?: string;
  /** Statements that declare `row` and `step` of written element i, if rows are not in order. */
  readonly place?: string;
}

export function rowMain(program: RowProgram): string {
  const { layout, element, phases, write: written = '', finish = '', prepare = '' } = program;
  const { wide, team, once, stage, kept = {} } = layout;
  const write = stage === 'rows' ? '' : written;
  const lanes: Lanes = wide === 'none' ? 1 : 4;
  const ofRow: Lanes = wide === 'rows' ? 4 : 1;
  // Positions: all lanes of `rows` are at the same one.
  const position =
    wide === 'steps'
      ? 'vec4<u32>(step * 4u, step * 4u + 1u, step * 4u + 2u, step * 4u + 3u)'
      : `${laneType('u32', lanes)}(step)`;
  const aliases = `alias F = ${laneType('f32', lanes)}; alias K = ${laneType('u32', lanes)};
    alias R = ${laneType('f32', ofRow)}; alias RK = ${laneType('u32', ofRow)};`;
  const read = `let at = base + step * u.inner;
    let k = ${position};
    ${element}`;
  const loop = (body: string) =>
    once
      ? `  if (member < u.steps) { ${body} }`
      : `  for (var step = ${team === 1 ? '0u' : 'member'}; step < u.steps; step += ${team}u) {
    ${read}
    ${body}
  }`;
  const gathered = phases.map((phase, i) => gather(phase, i, layout, loop(phase.step)));
  const body = `  let base = row / u.inner * u.steps * u.inner + row % u.inner;
${prepare}
${once ? `let step = min(member, u.steps - 1u); ${read}` : ''}
${gathered.join('\n')}
${write && loop(write)}`;
  if (stage === 'elements') {
    const { place = 'let row = i / (u.steps * u.inner) * u.inner + i % u.inner; let step = i / u.inner % u.steps;' } =
      program;
    const known = Object.keys(kept).map((name) => `let ${name} = kept_${name}[row];`);
    return `${aliases}\n${linearMain(`${place} let at = i; let k = ${position};
  ${prepare} ${element} ${known.join(' ')} ${write}`)}`;
  }
  const keep = stage ? Object.keys(kept).map((name) => `kept_${name}[row] = ${name};`) : [];
  const end = [finish, ...keep].join('\n');
  if (team === 1) return `${aliases}\n${linearMain(`  let row = i;\n${body}\n${end}`)}`;
  const teams = TEAM_THREADS / team;
  const [slot, member] = layout.whole
    ? [`lane / ${team}u`, `lane % ${team}u`]
    : [`lane % ${teams}u`, `lane / ${teams}u`];
  const accumulators = phases.flatMap((phase, i) =>
    phase.accumulators.map(
      ({ name, type }) => `var<workgroup> shared_${name}_${i}: array<${type === 'F' ? 'R' : 'RK'}, ${TEAM_THREADS}>;`,
    ),
  );
  return `${aliases}
${accumulators.join('\n')}
@compute @workgroup_size(${TEAM_THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let slot = ${slot};
  let member = ${member};
  let place = member * ${teams}u + slot;
  // Threads beyond the end do the last row too, and write the same: all must meet at the barriers.
  let row = min((group.y * groups.x + group.x) * ${teams}u + slot, u.count - 1u);
${body}
  if (member == 0u) {
${finish}
  }
}
`;
}

/**
 * Dispatches a shader of rowMain. If threads write only the element of their own index, rows come first, and their
 * elements in a separate dispatch.
 * @param kept values of a row that phases compute and `write` reads.
 * @param ofRows the outputs that `finish` writes.
 */
export function dispatchRows<S extends Spec & { readonly layout: RowLayout }>(
  ctx: Context,
  dispatch: Dispatch<S>,
  kept: Kept,
  ofRows: readonly string[] = [],
): void {
  if (!ctx.device.ownElement) {
    ctx.dispatch(dispatch);
    return;
  }
  const { spec, inputs, outputs, uniforms } = dispatch;
  const lanes: Lanes = spec.layout.wide === 'rows' ? 4 : 1;
  const rows = uniforms!.count as number;
  const temps = Object.entries(kept).map(([name, type]) => {
    const temp = ctx.temp([rows * lanes], type === 'F' ? DType.float32 : DType.uint32);
    return [`kept_${name}`, inLanes(temp, lanes)] as const;
  });
  const some = (of: boolean) => Object.entries(outputs).filter(([name]) => ofRows.includes(name) === of);
  const stage = (name: RowLayout['stage']): S => ({ ...spec, layout: { ...spec.layout, kept, stage: name } });
  const bound = { ...Object.fromEntries(some(true)), ...Object.fromEntries(temps) };
  if (Object.keys(bound).length > 0) ctx.dispatch({ ...dispatch, spec: stage('rows'), outputs: bound });
  const elements = Object.fromEntries(some(false));
  const [binding] = Object.values(elements);
  const { tensor, vec } = 'tensor' in binding ? binding : { tensor: binding, vec: 1 };
  const count = tensor.size / vec;
  ctx.dispatch({
    ...dispatch,
    spec: stage('elements'),
    inputs: { ...inputs, ...Object.fromEntries(temps) },
    outputs: elements,
    uniforms: { ...uniforms, count },
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

/** The loop of a phase, then the combination of its lanes and its threads. */
function gather(
  { accumulators, merge, after = '' }: RowPhase,
  index: number,
  { wide, team }: RowLayout,
  loop: string,
): string {
  const names = accumulators.map(({ name }) => name);
  // In the loop NAME has the lanes of a vector; after it, the same name has those of a row.
  const inLoop = wide === 'steps' ? (name: string) => `${name}_all` : (name: string) => name;
  const lines = accumulators.map(({ name, type, start }) => `  var ${inLoop(name)} = ${type}(${start});`);
  lines.push(wide === 'steps' ? rename(loop, names) : loop);
  if (wide === 'steps') {
    for (const { name } of accumulators) lines.push(`  var ${name} = ${name}_all[0];`);
    for (const lane of [1, 2, 3])
      lines.push(
        `  {${accumulators.map(({ name }) => `let other_${name} = ${name}_all[${lane}];`).join(' ')} ${merge} }`,
      );
  }
  if (team > 1) lines.push(mergeTeam({ team, names, shared: (name) => `shared_${name}_${index}`, merge }));
  lines.push(after);
  return lines.join('\n');
}

function rename(text: string, names: readonly string[]): string {
  return names.reduce((result, name) => result.replace(new RegExp(`\\b${name}\\b`, 'g'), `${name}_all`), text);
}

/** The values that SPREAD computes. */
export const SPREAD_KEPT: Kept = { mean: 'F', rest: 'F', inverse: 'F' };

/**
 * The phases that compute `mean`, `rest` and `inverse` of rows of u.length elements, the inverse of the deviation with
 * u.epsilon. A float's sum of many elements far from zero is inexact, and so is the mean. Their distances from it yield
 * the correction: (x - mean) - rest is right.
 */
export const SPREAD: readonly RowPhase[] = [
  {
    // Divided before they are added: the sum of the largest floats overflows, their mean does not.
    accumulators: [{ name: 'mean', type: 'F', start: '0.0' }],
    step: 'mean += x * (1.0 / f32(u.length));',
    merge: 'mean += other_mean;',
  },
  {
    accumulators: [
      { name: 'squares', type: 'F', start: '0.0' },
      { name: 'distance', type: 'F', start: '0.0' },
    ],
    step: 'let d = x - mean; squares += d * d; distance += d;',
    merge: 'squares += other_squares; distance += other_distance;',
    after: `// Squares that overflow are infinite, and all of the row is 0 then.
  let rest = select(distance / f32(u.length), R(0.0), squares > R(3.4028234e38));
  let variance = select(squares / f32(u.length) - rest * rest, squares, squares > R(3.4028234e38));
  let inverse = 1.0 / sqrt(select(variance, R(0.0), variance < R(0.0)) + u.epsilon);`,
  },
];
