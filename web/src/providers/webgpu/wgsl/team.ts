// Reductions in which a team of threads shares each output: a team of one on software adapters, which have no cheap
// barriers.
import { linearMain, linearWorkgroups } from './linear';
import type { DeviceTraits } from '../../../contract/kernel';

/** Threads of a workgroup. */
export const TEAM_THREADS = 256;
/** Number of threads whose parts one thread combines at once: a team has at most its square. */
const AT_ONCE = 16;

/** The values of a team's threads, and their combination. */
interface Gathered {
  readonly team: number;
  readonly names: readonly string[];
  /** The array of workgroup memory, of TEAM_THREADS elements, for a name. */
  readonly shared: (name: string) => string;
  /** Statements that combine other_NAME into NAME. */
  readonly merge: string;
}

/**
 * WGSL that combines the variables of these names of all threads in a team; all of them then have the result. The
 * thread's `member` of the team, its team's `slot` and its `place` in the arrays are declared before. A barrier takes
 * longer than some loads: there are two at most, and all threads do the last step.
 */
export function mergeTeam({ team, names, shared, merge }: Gathered): string {
  const teams = TEAM_THREADS / team;
  const leading = Math.ceil(team / AT_ONCE);
  const publish = names.map((name) => `${shared(name)}[place] = ${name};`).join(' ');
  /** Combines every `stride`-th of the members from `first` on. */
  const take = (first: string, stride: number, count: number) => `
  ${names.map((name) => `${name} = ${shared(name)}[(${first}) * ${teams}u + slot];`).join(' ')}
  for (var other = 1u; other < ${count}u; other++) {
    let from_other = (${first} + other * ${stride}u) * ${teams}u + slot;
    ${names.map((name) => `let other_${name} = ${shared(name)}[from_other];`).join(' ')}
    ${merge}
  }`;
  const first = `  if (member < ${leading}u) { let leading = member % ${leading}u;
  ${take('leading', leading, team / leading)}
  ${publish} }
  workgroupBarrier();`;
  return `  ${publish}
  workgroupBarrier();
${leading > 1 ? first : ''}
${take('0u', 1, leading > 1 ? leading : team)}`;
}

export interface TeamReduction {
  /** Threads per output: a power of two up to 256. */
  readonly team: number;
  /** True if neighboring threads should have neighboring outputs, not neighboring steps of one. */
  readonly neighbors: boolean;
  /** A thread's variables, with their types and initial values. */
  readonly accumulators: readonly { readonly name: string; readonly type: string; readonly start: string }[];
  /**
   * Statements before the steps. `o: u32` is the output's index; they declare `first` and `end`, the range of its
   * steps.
   */
  readonly prepare: string;
  /** Statements of step `r: u32`. */
  readonly step: string;
  /** Statements that combine other_NAME of another thread, which had later or interleaved steps. */
  readonly merge: string;
  /** Statements that write output `o`. */
  readonly finish: string;
}

/** WGSL of the entry point; u.count is the number of outputs. */
export function teamMain({ team, neighbors, accumulators, prepare, step, merge, finish }: TeamReduction): string {
  const declare = accumulators.map(({ name, type, start }) => `  var ${name}: ${type} = ${start};`).join('\n');
  if (team === 1) {
    return linearMain(
      `  let o = i;\n${prepare}\n${declare}\n  for (var r = first; r < end; r++) {\n${step}\n  }\n${finish}`,
    );
  }
  const teams = TEAM_THREADS / team;
  const [slot, member] = neighbors ? [`lane % ${teams}u`, `lane / ${teams}u`] : [`lane / ${team}u`, `lane % ${team}u`];
  const shared = accumulators
    .map(({ name, type }) => `var<workgroup> shared_${name}: array<${type}, ${TEAM_THREADS}>;`)
    .join('\n');
  return `
${shared}
@compute @workgroup_size(${TEAM_THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let slot = ${slot};
  let member = ${member};
  let place = member * ${teams}u + slot;
  let wanted = (group.y * groups.x + group.x) * ${teams}u + slot;
  // Threads beyond the end redo the last output: all must meet at the barriers.
  let o = min(wanted, u.count - 1u);
${prepare}
${declare}
  for (var r = first + member; r < end; r += ${team}u) {
${step}
  }
${mergeTeam({ team, names: accumulators.map(({ name }) => name), shared: (name) => `shared_${name}`, merge })}
  if (member == 0u && wanted < u.count) {
${finish}
  }
}
`;
}

export function teamWorkgroups(outputs: number, team: number, device: DeviceTraits): [number, number, number] {
  return team === 1 ? linearWorkgroups(outputs, device) : linearWorkgroups(outputs * team, device, TEAM_THREADS);
}

/** The team for this number of outputs and steps. Three sizes, to limit the number of pipelines. */
export function teamSize(outputs: number, steps: number, device: DeviceTraits): number {
  if (device.software || device.maxInvocations < TEAM_THREADS || steps <= 8 || outputs >= 32768) return 1;
  const few = outputs < 1024 ? 32 : 128;
  return steps <= few || outputs >= 4096 ? 16 : 256;
}

/** The number of parts of an output's steps, which a second dispatch combines; 1: none. */
export function partsOf(outputs: number, steps: number, team: number, device: DeviceTraits): number {
  const [threads, fewest] = device.software ? [256, 64] : [65536, 16 * team];
  if (steps < 8 * fewest) return 1;
  return Math.max(1, Math.min(Math.floor(threads / (outputs * team)), Math.floor(steps / fewest)));
}
