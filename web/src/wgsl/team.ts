// Reductions in which a team of threads shares each output: a team of one on software adapters, which have no cheap
// barriers.
import { linearMain, linearWorkgroups } from './linear';
import type { DeviceTraits } from '../contract/kernel';

const THREADS = 256;

export interface TeamReduction {
  /** Threads per output: a power of two up to 256. */
  readonly team: number;
  /** Whether neighboring threads should work on neighboring outputs, not on neighboring steps of one. */
  readonly neighbors: boolean;
  /** What a thread gathers: variables, their types and what they begin with. */
  readonly accumulators: readonly { readonly name: string; readonly type: string; readonly start: string }[];
  /**
   * Statements before the steps. `o: u32` is the output's index; they declare `first` and `end`, the range of its
   * steps.
   */
  readonly prepare: string;
  /** Statements of step `r: u32`. */
  readonly step: string;
  /** Statements that take in the other_NAME of another thread, which had later steps or steps in between. */
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
  const teams = THREADS / team;
  const [slot, member] = neighbors ? [`lane % ${teams}u`, `lane / ${teams}u`] : [`lane / ${team}u`, `lane % ${team}u`];
  const shared = accumulators
    .map(({ name, type }) => `var<workgroup> shared_${name}: array<${type}, ${THREADS}>;`)
    .join('\n');
  const publish = accumulators.map(({ name }) => `  shared_${name}[place] = ${name};`).join('\n');
  const fetch = accumulators
    .map(({ name }) => `      let other_${name} = shared_${name}[place + half * ${teams}u];`)
    .join('\n');
  return `
${shared}
@compute @workgroup_size(${THREADS})
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
${publish}
  for (var half = ${team / 2}u; half > 0u; half = half / 2u) {
    workgroupBarrier();
    if (member < half) {
${fetch}
${merge}
${publish}
    }
  }
  if (member == 0u && wanted < u.count) {
${finish}
  }
}
`;
}

export function teamWorkgroups(outputs: number, team: number, device: DeviceTraits): [number, number, number] {
  return team === 1 ? linearWorkgroups(outputs, device) : linearWorkgroups(outputs * team, device, THREADS);
}

/** The team for so many outputs of so many steps each. Three sizes, to have few pipelines. */
export function teamSize(outputs: number, steps: number, device: DeviceTraits): number {
  if (device.software || device.maxInvocations < THREADS || steps <= 8 || outputs >= 32768) return 1;
  const few = outputs < 1024 ? 32 : 128;
  return steps <= few || outputs >= 4096 ? 16 : 256;
}

/** How many parts the steps of an output are split into, to be combined by a second dispatch; 1: no need. */
export function partsOf(outputs: number, steps: number, team: number, device: DeviceTraits): number {
  const [threads, fewest] = device.software ? [256, 64] : [65536, 16 * team];
  if (steps < 8 * fewest) return 1;
  return Math.max(1, Math.min(Math.floor(threads / (outputs * team)), Math.floor(steps / fewest)));
}
