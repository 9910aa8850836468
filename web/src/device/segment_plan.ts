// Memory of a segment, from what its commands read and write. Pure. Two things are decided here besides the places of
// tensors:
//
// - In place: an output takes over the memory of an input that ends there, where the kernel says that it may: one
//   tensor less at that time. They have one size and element type, and the input is the arena's own, neither bound
//   twice nor needed later (feeds are copies there, written again in each run). Where only some dispatches of a
//   pipeline could, none does, unless that lowers the peak: it would be one more pipeline.
// - Aliases: WebGPU lets a dispatch read and write one buffer only if all its bindings there are read_write. Tensors
//   that a dispatch reads and writes lie in different buffers as long as that costs little; else the pipelines that
//   touch most memory get read_write bindings, as few as will do, and never for weights; so do those that find both in
//   one buffer since an earlier segment, and copies go through another buffer then. No pipeline is compiled before
//   (providers/webgpu/variants.ts).
import { type Conflicts, largestSum, type Lifetime, type MemoryPlan, planMemory, type Slot } from './memory_plan';

/** What a command binds. */
export interface Access {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** Its pipeline: commands of one group change together. A command without one (a copy) cannot be changed. */
  readonly group?: string;
  /** Its bindings are read_write from the start, so that what it reads and writes may lie in one buffer. */
  readonly alias?: boolean;
  /**
   * Pairs of an index in `reads` and one in `writes`: that output may lie where that input does, if the input is not
   * needed any more.
   */
  readonly inPlace?: readonly InPlace[];
}

export type InPlace = readonly [read: number, write: number];

export interface SegmentPlan extends MemoryPlan {
  /**
   * The most bytes that are needed at one time, of existing slots too. An output in the place of an input counts once.
   */
  readonly peak: number;
  /** By command: which of its pairs in `inPlace` was chosen. */
  readonly inPlace: ReadonlyMap<number, InPlace>;
  /** The commands whose reads must be bound read_write. */
  readonly aliased: ReadonlySet<number>;
}

/** A plan that needs not more than this much above the peak is good enough to leave shaders as they are. */
const ENOUGH = 1.07;
/** Pipelines are changed from those on that touch the most memory, in these shares of the peak. */
const SHARES = [0.6, 0.4, 0.25, 0.15, 0.08, 0];
/** More tensors than this are not planned several times. */
const MANY = 4000;
/** What another share must gain. */
const WORTH = 0.99;
/** What must be gained by a pipeline that some commands need in two forms. */
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
  // What lies in one buffer since an earlier segment cannot be parted any more.
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

/** Places for tensors that are there all the time: what a command reads and what it writes lie in different buffers. */
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

/** Bytes that the commands of a group touch at most. */
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

/** Writable bindings may not overlap, so a tensor that is bound twice cannot be bound so. */
function bindsTwice({ reads }: Access, isTensor: (id: number) => boolean): boolean {
  const own = reads.filter(isTensor);
  return new Set(own).size < own.length;
}

/** Which outputs lie where an input does, unless it makes one more pipeline and lowers no peak. */
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

/** Tensors that follow each other in one place, as one; its id is that of the first. */
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

/** What these commands read and what they write. */
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

/** The commands of those groups in which any reads and writes one buffer. */
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
