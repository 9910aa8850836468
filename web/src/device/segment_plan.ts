// Plans the memory of a segment, by the reads and writes of its commands. Pure. Besides the places of tensors it
// decides on:
//
// - In place: an output reuses the memory of an input that ends there, if the kernel allows it: one tensor less at that
//   time. Both have one size and element type, and the input is in the arena, neither bound twice nor needed later
//   (feeds are copies there, written again in each run). If only some dispatches of a pipeline could do this, none
//   does, unless that lowers the peak: it would need another pipeline.
// - Aliases: WebGPU lets a dispatch read and write one buffer only if all its bindings there are read_write. Tensors
//   that a dispatch reads and writes are in different buffers as long as that costs little. Otherwise the pipelines
//   that access the most memory get read_write bindings: as few as possible, and never for weights. Pipelines whose
//   tensors have shared a buffer since an earlier segment get them, too; copies then use another buffer. No pipeline is
//   compiled before (providers/webgpu/variants.ts).
import { type Conflicts, largestSum, type Lifetime, type MemoryPlan, planMemory, type Slot } from './memory_plan';

/** The bindings of a command. */
export interface Access {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** Its pipeline: commands of one group change together. A command without one (a copy) cannot be changed. */
  readonly group?: string;
  /** Its bindings are read_write from the start, so that its inputs and outputs may be in one buffer. */
  readonly alias?: boolean;
  /**
   * Pairs of an index in `reads` and one in `writes`: the output may be in the input's place, if the input is not
   * needed afterwards.
   */
  readonly inPlace?: readonly InPlace[];
}

export type InPlace = readonly [read: number, write: number];

export interface SegmentPlan extends MemoryPlan {
  /**
   * The most bytes that are needed at one time, including existing slots. An output in an input's place counts once.
   */
  readonly peak: number;
  /** By command: the chosen pair of `inPlace`. */
  readonly inPlace: ReadonlyMap<number, InPlace>;
  /** The commands whose reads must be bound read_write. */
  readonly aliased: ReadonlySet<number>;
}

/** A plan within this factor of the peak is good enough to leave shaders unchanged. */
const ENOUGH = 1.07;
/** Pipelines change in this order: those that access the most memory first, in these shares of the peak. */
const SHARES = [0.6, 0.4, 0.25, 0.15, 0.08, 0];
/** Segments with more tensors than this are planned once. */
const MANY = 4000;
/** The gain that another share must bring. */
const WORTH = 0.99;
/** The gain that justifies a pipeline in two forms. */
const WORTH_A_PIPELINE = 0.98;

export function planSegment(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  existing: readonly Slot[] = [],
  maxBytes = Infinity,
): SegmentPlan {
  const held = existing.flatMap((slot) => slot.held);
  const inPlace = chooseInPlace(tensors, accesses, held);
  const { blocks, blockOf } = merge(tensors, accesses, inPlace);
  const peak = largestSum([...blocks, ...held]);
  const there = existing.reduce((sum, { bytes }) => sum + bytes, 0);
  const slotOfHeld = new Map(existing.flatMap((slot, i) => slot.held.map(({ id }) => [id, i] as const)));
  const isTensor = (id: number) => blockOf.has(id) || slotOfHeld.has(id);
  const weights = weigh(tensors, accesses, held);
  // Tensors that have shared a buffer since an earlier segment can no longer be separated.
  const inOne = (from: number, to: number) =>
    from !== to && slotOfHeld.has(from) && slotOfHeld.get(from) === slotOfHeld.get(to);
  const heldTogether = ({ reads, writes }: Access) => reads.some((from) => writes.some((to) => inOne(from, to)));
  const together = new Set(
    accesses.flatMap((access) => (access.group !== undefined && heldTogether(access) ? [access.group] : [])),
  );
  const attempt = (share: number, effort: number) => {
    const concerned = ({ group }: Access) =>
      group !== undefined && (together.has(group) || weights.get(group)! >= share * peak);
    const changed = (access: Access) => concerned(access) && !bindsTwice(access, isTensor);
    const block = (id: number) => blockOf.get(id) ?? id;
    const conflicts = conflictsOf(accesses, inPlace, block, (access) => !changed(access));
    const avoid = conflictsOf(accesses, inPlace, block, changed);
    const plan = planMemory(blocks, existing, { conflicts, avoid, maxBytes, effort, good: ENOUGH });
    return { share, plan, changed, made: plan.newSlots.reduce((sum, bytes) => sum + bytes, 0) };
  };
  const enough = ({ made }: { readonly made: number }) => made === 0 || there + made <= ENOUGH * peak;
  let best = attempt(Infinity, 2);
  for (const share of SHARES) {
    if (enough(best) || tensors.length > MANY) break;
    const other = attempt(share, 0.25);
    if (other.made < WORTH * best.made) best = other;
  }
  if (!enough(best) && tensors.length <= MANY) best = attempt(best.share, 8);
  const places = new Map([...blockOf].map(([id, block]) => [id, best.plan.places.get(block)!]));
  const slotOf = (id: number) => places.get(id)?.slot ?? slotOfHeld.get(id) ?? -1;
  return {
    places,
    newSlots: best.plan.newSlots,
    peak,
    inPlace,
    aliased: aliasedCommands(accesses, inPlace, best.changed, slotOf),
  };
}

/** Places for permanent tensors: those that a command reads and those that it writes are in different buffers. */
export function planKept(tensors: readonly Lifetime[], accesses: readonly Access[], maxBytes = Infinity): MemoryPlan {
  const always = tensors.map((tensor) => ({ ...tensor, start: -1, end: Infinity }));
  return planMemory(always, [], {
    conflicts: conflictsOf(
      accesses,
      new Map(),
      (id) => id,
      () => true,
    ),
    maxBytes,
  });
}

/** The most bytes that the commands of a group access. */
function weigh(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  held: readonly Lifetime[],
): Map<string, number> {
  const bytes = new Map([...tensors, ...held].map((tensor) => [tensor.id, tensor.bytes]));
  const weights = new Map<string, number>();
  for (const { group, reads, writes } of accesses) {
    if (group === undefined) continue;
    const touched = [...new Set([...reads, ...writes])].reduce((sum, id) => sum + (bytes.get(id) ?? 0), 0);
    weights.set(group, Math.max(weights.get(group) ?? 0, touched));
  }
  return weights;
}

/** Writable bindings may not overlap, so a tensor that is bound twice cannot be writable. */
function bindsTwice({ reads }: Access, isTensor: (id: number) => boolean): boolean {
  const own = reads.filter(isTensor);
  return new Set(own).size < own.length;
}

/** The outputs to put in an input's place, unless this needs another pipeline and does not lower the peak. */
function chooseInPlace(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  held: readonly Lifetime[],
): Map<number, InPlace> {
  const byId = new Map(tensors.map((tensor) => [tensor.id, tensor]));
  const possible = new Map<number, InPlace>();
  accesses.forEach(({ reads, writes, inPlace }, i) => {
    const pair = inPlace?.find(([read, write]) => {
      const [from, to] = [byId.get(reads[read]), byId.get(writes[write])];
      return (
        from &&
        to &&
        from.end === i &&
        to.start === i &&
        from.bytes === to.bytes &&
        reads.filter((id) => id === from.id).length === 1
      );
    });
    if (pair) possible.set(i, pair);
  });
  const forms = new Map<string | undefined, Set<string | undefined>>();
  accesses.forEach(({ group }, i) => forms.set(group, (forms.get(group) ?? new Set()).add(possible.get(i)?.join())));
  const wholly = new Map([...possible].filter(([i]) => forms.get(accesses[i].group)!.size === 1));
  if (wholly.size === possible.size) return possible;
  const peakOf = (inPlace: ReadonlyMap<number, InPlace>) =>
    largestSum([...merge(tensors, accesses, inPlace).blocks, ...held]);
  return peakOf(possible) < WORTH_A_PIPELINE * peakOf(wholly) ? possible : wholly;
}

/** Joins tensors that follow each other in one place; the id is that of the first. */
function merge(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  inPlace: ReadonlyMap<number, InPlace>,
): { blocks: Lifetime[]; blockOf: Map<number, number> } {
  const blockOf = new Map(tensors.map(({ id }) => [id, id]));
  const blocks = new Map(tensors.map((tensor) => [tensor.id, tensor]));
  for (const [i, [read, write]] of [...inPlace].sort(([a], [b]) => a - b)) {
    const { reads, writes } = accesses[i];
    const block = blockOf.get(reads[read])!;
    blocks.set(block, { ...blocks.get(block)!, end: blocks.get(writes[write])!.end });
    blocks.delete(writes[write]);
    blockOf.set(writes[write], block);
  }
  return { blocks: [...blocks.values()], blockOf };
}

/** Conflicts between these commands' reads and writes. */
function conflictsOf(
  accesses: readonly Access[],
  inPlace: ReadonlyMap<number, InPlace>,
  blockOf: (id: number) => number,
  concerned: (access: Access) => boolean,
): Conflicts {
  const conflicts = new Map<number, Set<number>>();
  const add = (a: number, b: number) => conflicts.set(a, (conflicts.get(a) ?? new Set()).add(b));
  accesses.forEach((access, i) => {
    if (access.alias || !concerned(access)) return;
    for (const from of readsLeft(access, inPlace.get(i)).map(blockOf)) {
      for (const to of access.writes.map(blockOf)) {
        if (from === to) continue;
        add(from, to);
        add(to, from);
      }
    }
  });
  return conflicts;
}

function readsLeft({ reads }: Access, pair: InPlace | undefined): number[] {
  return pair ? reads.filter((_, k) => k !== pair[0]) : [...reads];
}

/** The commands of groups in which any command reads and writes one buffer. */
function aliasedCommands(
  accesses: readonly Access[],
  inPlace: ReadonlyMap<number, InPlace>,
  changed: (access: Access) => boolean,
  slotOf: (id: number) => number,
): Set<number> {
  const key = (i: number) => `${accesses[i].group} ${inPlace.get(i)?.join() ?? ''}`;
  const groups = new Set<string>();
  accesses.forEach((access, i) => {
    if (access.alias || !changed(access)) return;
    const written = new Set(access.writes.map(slotOf));
    if (readsLeft(access, inPlace.get(i)).some((id) => slotOf(id) >= 0 && written.has(slotOf(id)))) groups.add(key(i));
  });
  return new Set(accesses.flatMap((access, i) => (groups.has(key(i)) && changed(access) ? [i] : [])));
}
