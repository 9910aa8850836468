// What a recording does in its first run only: commands that make the same bytes in every run, because all that they
// read is the same. Pure. Position ids, masks, grids of anchors and rotary tables are of this kind, whose sizes are
// known with the feeds' shapes only, and whatever is made of weights alone. Uploads are fixed before which the core
// read no contents of feeds (ort_run_replayable at that time); a walk that brings other bytes has the segment compiled
// again. Feeds, bound buffers and what lives beyond a segment that is not the last are never taken to be the same.
// Until a run with it has ended without errors, each run does it all. Counters and profiles have what was really done.
//
// What other commands read of their results is kept as long as the recording, in memory that nothing else uses, so that
// other shapes, sessions and runs in flight leave it alone. Where that is too much (arena.ts), the largest results are
// made in every run after all, and what they are made of is kept instead: it is often smaller (the column, not the
// expanded mask). A large weight that is transposed is transposed in every run: a second copy of it would be there all
// the time.
import type { Lifetime } from './memory_plan';
import type { Access } from './segment_plan';

/** Where contents come from that no command makes. */
export interface Contents {
  /** Whether a tensor that is not the segment's own has the same bytes for ever. */
  isWeight(id: number): boolean;
  /** Tensors that the CPU fills, with the same bytes in every run. */
  readonly uploaded: ReadonlySet<number>;
  /** Tensors that feeds or the CPU fill with other bytes, or that may be written after this segment. */
  readonly changing: ReadonlySet<number>;
  /** Tensors that kernels want kept like the weights that they are made of, with room of their own. */
  readonly ofWeights: ReadonlySet<number>;
}

/** How many bytes may be kept: of those that kernels want kept like weights, and of all others. */
export interface Room {
  readonly ofWeights: number;
  readonly others: number;
}

export interface FixedPart {
  /** The commands that need not be done again, by index. */
  readonly once: ReadonlySet<number>;
  /** Tensors whose memory must stay theirs. */
  readonly kept: ReadonlySet<number>;
  /** Uploads that need not be done again. */
  readonly uploads: ReadonlySet<number>;
}

/**
 * @param tensors those that are born in the segment; the ones with no end are needed after it.
 */
export function fixedPart(
  tensors: readonly Lifetime[],
  accesses: readonly Access[],
  contents: Contents,
  room: Room,
): FixedPart {
  const writers = usersOf(accesses, ({ writes }) => writes);
  const readers = usersOf(accesses, ({ reads }) => reads);
  const written = (id: number) => writers.get(id) ?? [];
  // What is read between two commands that write it would be found as the last one left it.
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
    // All that these make is then made in every run.
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

/** Those for which there is no room; `tensors` are sorted, the largest first. */
function surplusOf(tensors: readonly Lifetime[], room: number): Lifetime[] {
  let sum = tensors.reduce((total, { bytes }) => total + bytes, 0);
  return tensors.filter(({ bytes }) => {
    if (sum <= room) return false;
    sum -= bytes;
    return true;
  });
}

/** The commands that read only what is the same in every run, and write only tensors of `own` that no others write. */
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
