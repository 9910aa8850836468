// The part of a recording that only its first run executes: commands that make the same bytes in every run, because
// their inputs never change. Pure. Examples are position ids, masks, grids of anchors and rotary tables, whose sizes
// follow from the feeds' shapes, and all values derived from weights alone. An upload is fixed if the core had read no
// contents of feeds before it (ort_run_replayable at that time); a walk with other bytes compiles the segment again.
// Feeds, bound buffers, and tensors that outlive a segment that is not the last are never assumed to be the same. Until
// a run with it has ended without errors, each run executes all commands. Counters and profiles show the work that was
// really done.
//
// Results that other commands read are kept as long as the recording, in memory of their own, so that other shapes,
// sessions and runs in flight do not change them. If they are too large (arena.ts), the largest results are computed in
// every run after all, and their inputs are kept instead, which are often smaller (the column, not the expanded mask).
// A large weight is transposed in every run: otherwise a second copy of it would take memory all the time.
import type { Lifetime } from './memory_plan';
import type { Access } from './segment_plan';

/** The source of contents that no command makes. */
export interface Contents {
  /** True if a tensor from outside the segment never changes. */
  isWeight(id: number): boolean;
  /** Tensors that the CPU fills, with the same bytes in every run. */
  readonly uploaded: ReadonlySet<number>;
  /** Tensors that feeds or the CPU fill with other bytes, or that may be written after this segment. */
  readonly changing: ReadonlySet<number>;
  /** Tensors that kernels want kept like the weights from which they are derived, with a limit of their own. */
  readonly ofWeights: ReadonlySet<number>;
}

/** The number of bytes to keep: of tensors derived from weights, and of all others. */
export interface Room {
  readonly ofWeights: number;
  readonly others: number;
}

export interface FixedPart {
  /** The commands that need not run again, by index. */
  readonly once: ReadonlySet<number>;
  /** Tensors whose memory must not be reused. */
  readonly kept: ReadonlySet<number>;
  /** Uploads that need not be repeated. */
  readonly uploads: ReadonlySet<number>;
}

/** @param tensors the tensors made in the segment; tensors without an end are needed after it. */
export function fixedPart(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  contents: Contents,
  room: Room,
): FixedPart {
  const writers = usersOf(accesses, ({ writes }) => writes);
  const readers = usersOf(accesses, ({ reads }) => reads);
  const written = (id: number) => writers.get(id) ?? [];
  // A tensor read between two commands that write it would have the contents of the last one.
  const complete = tensors.filter(({ id }) => !((readers.get(id)?.[0] ?? Infinity) <= (written(id).at(-1) ?? -1)));
  const own = new Set(complete.flatMap(({ id }) => (contents.changing.has(id) ? [] : [id])));
  const once = fixedCommands(accesses, own, written, contents);
  /** Uploads for which there is no room. */
  const again = new Set<number>();
  const stays = (id: number) =>
    own.has(id) &&
    !again.has(id) &&
    (contents.uploaded.has(id) || writers.has(id)) &&
    written(id).every((i) => once.has(i));
  const isNeeded = ({ id, end }: Lifetime) => end === Infinity || (readers.get(id)?.some((i) => !once.has(i)) ?? false);
  const makeAgain = (id: number): void => {
    if (!writers.has(id)) again.add(id);
    // Everything that these make is then made in every run.
    for (const i of written(id)) if (once.delete(i)) accesses[i].writes.forEach(makeAgain);
  };
  for (;;) {
    const kept = tensors.filter((tensor) => stays(tensor.id) && isNeeded(tensor)).sort((a, b) => b.bytes - a.bytes);
    const surplus = [
      ...surplusOf(
        kept.filter(({ id }) => contents.ofWeights.has(id)),
        room.ofWeights,
      ),
      ...surplusOf(
        kept.filter(({ id }) => !contents.ofWeights.has(id)),
        room.others,
      ),
    ];
    if (surplus.length === 0) {
      const ids = new Set(kept.map(({ id }) => id));
      const uploads = tensors
        .filter((tensor) => contents.uploaded.has(tensor.id) && stays(tensor.id))
        .map(({ id }) => id);
      return { once, kept: ids, uploads: new Set(uploads) };
    }
    for (const { id } of surplus) makeAgain(id);
  }
}

/** The tensors for which there is no room; `tensors` are sorted, the largest first. */
function surplusOf(tensors: readonly Lifetime[], room: number): Lifetime[] {
  let sum = tensors.reduce((total, { bytes }) => total + bytes, 0);
  return tensors.filter(({ bytes }) => {
    if (sum <= room) return false;
    sum -= bytes;
    return true;
  });
}

/** The commands that read only unchanging tensors, and write only tensors of `own` that no other command writes. */
function fixedCommands(
  accesses: readonly Access[],
  own: ReadonlySet<number>,
  written: (id: number) => readonly number[],
  { isWeight, uploaded }: Contents,
): Set<number> {
  const fixed = new Set(accesses.keys());
  const made = (id: number) => own.has(id) && written(id).every((i) => fixed.has(i));
  const known = (id: number) => made(id) && (uploaded.has(id) || written(id).length > 0);
  for (let before = -1; before !== fixed.size; ) {
    before = fixed.size;
    for (const i of fixed) {
      const { reads, writes } = accesses[i];
      if (!writes.every(made) || !reads.every((id) => isWeight(id) || known(id))) fixed.delete(i);
    }
  }
  return fixed;
}

/** By tensor, the commands that read or write it. */
function usersOf(accesses: readonly Access[], which: (access: Access) => readonly number[]): Map<number, number[]> {
  const users = new Map<number, number[]>();
  accesses.forEach((access, i) => {
    for (const id of new Set(which(access))) {
      const known = users.get(id);
      if (known) known.push(i);
      else users.set(id, [i]);
    }
  });
  return users;
}
