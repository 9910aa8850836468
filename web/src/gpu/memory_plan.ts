// Memory from lifetimes: where the tensors of a segment lie. Pure, so that it can be tested anywhere.
//
// A buffer holds several tensors at different offsets, also at one time. WebGPU forbids one dispatch to read and write the same
// buffer, even at different offsets: such pairs conflict, and lie in different buffers. Greedy: each tensor goes where the
// least new memory is needed for it. Which tensor comes first decides how well that goes, so a few orders are tried.

export interface Lifetime {
  readonly id: number;
  readonly bytes: number;
  /** The commands between which it must be kept, both included. -1: written before the first; Infinity: needed after the last. */
  readonly start: number;
  readonly end: number;
}

/** Pairs of tensors that must lie in different buffers, both ways. */
export type Conflicts = ReadonlyMap<number, ReadonlySet<number>>;

/** What a buffer holds at an offset, and when. */
export interface Held extends Lifetime {
  readonly offset: number;
}

/** A buffer that exists already, and what is in it that is still needed. */
export interface Slot {
  readonly bytes: number;
  readonly held: readonly Held[];
}

export interface Place {
  /** An index into the existing slots followed by the new ones. */
  readonly slot: number;
  readonly offset: number;
}

export interface MemoryPlan {
  readonly places: ReadonlyMap<number, Place>;
  /** Sizes of the buffers to make. */
  readonly newSlots: readonly number[];
}

/** New buffers come in steps of this size, so that shapes that differ a little can share them. */
const GRANULE = 1024;
/** What every device allows as the offset of a binding (minStorageBufferOffsetAlignment is at most this). */
const OFFSET_ALIGNMENT = 256;
/** More tensors than this get one order only. */
const MANY = 4000;
/** Tensors that are placed in tries of other orders. */
const TRIES = 8000;
/** What is not more above the lower bound needs no further tries. */
const GOOD = 1.05;
/** Commands in a window of time. */
const WINDOW = 16;

export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** Bytes of the storage of a tensor: never empty (bindings must not be), and always whole vec4s. */
export function storageBytes(bytes: number): number {
  return Math.max(16, roundUp(bytes, 16));
}

export function planMemory(
  tensors: readonly Lifetime[], existing: readonly Slot[] = [], conflicts: Conflicts = new Map(), maxBytes = Infinity,
): MemoryPlan {
  const random = randomNumbers();
  const enough = existing.length > 0 ? 0 : GOOD * largestSum(tensors);
  const ranks = new Map(tensors.map(({ id, bytes }) => [id, bytes]));
  let best: Attempt | undefined;
  for (let tries = tensors.length > MANY ? 1 : 3 + Math.floor(TRIES / Math.max(tensors.length, 1)); tries > 0; tries--) {
    const order = [...tensors].sort((a, b) => ranks.get(b.id)! - ranks.get(a.id)! || a.start - b.start);
    const attempt = placeInOrder(order, existing, conflicts, maxBytes, best && random);
    if (!best || attempt.bytes <= best.bytes) best = attempt;
    if (best.bytes <= enough) break;
    // Who needed new memory comes earlier next time, and chance sees to the rest. Now and then all starts anew.
    const anew = tries % 16 === 0;
    for (const { id, bytes } of tensors) ranks.set(id, (anew ? bytes : ranks.get(id)!) * (attempt.grown.has(id) ? 1.2 : 1) * (0.9 + 0.2 * random()));
  }
  return best!;
}

interface Attempt extends MemoryPlan {
  readonly bytes: number;
  /** The tensors for which memory was made. */
  readonly grown: ReadonlySet<number>;
}

/** Between 0 and 1, the same ones each time: equal models get equal plans. */
function randomNumbers(): () => number {
  let seed = 1;
  return () => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff;
}

/** Held tensors by the time at which they are, so that few are looked at. */
class Bank {
  private readonly byWindow = new Map<number, Held[]>();
  private readonly always: Held[] = [];
  readonly ids = new Set<number>();

  constructor(public bytes: number, readonly fixed: boolean) {}

  hold(held: Held): void {
    this.ids.add(held.id);
    const [first, last] = [Math.floor(held.start / WINDOW), Math.floor(held.end / WINDOW)];
    if (last - first > 8) {
      this.always.push(held);
      return;
    }
    for (let window = first; window <= last; window++) {
      const list = this.byWindow.get(window);
      if (list) list.push(held);
      else this.byWindow.set(window, [held]);
    }
  }

  /** The lowest gap between what is held at the same time. */
  lowestOffset({ start, end }: Lifetime, size: number): number {
    const beside: Held[] = [];
    const look = (list: readonly Held[] | undefined) => {
      if (list) for (const held of list) if (held.start <= end && start <= held.end) beside.push(held);
    };
    look(this.always);
    const [first, last] = [Math.floor(start / WINDOW), Math.floor(end / WINDOW)];
    if (last - first > this.byWindow.size) for (const list of this.byWindow.values()) look(list);
    else for (let window = first; window <= last; window++) look(this.byWindow.get(window));
    beside.sort((a, b) => a.offset - b.offset);
    let offset = 0;
    for (const held of beside) {
      if (held.offset - offset >= size) break;
      offset = Math.max(offset, roundUp(held.offset + held.bytes, OFFSET_ALIGNMENT));
    }
    return offset;
  }
}

/** Without `random` the first of equally good places is taken. */
function placeInOrder(
  tensors: readonly Lifetime[], existing: readonly Slot[], conflicts: Conflicts, maxBytes: number, random?: () => number,
): Attempt {
  const banks = existing.map(({ bytes, held }) => {
    const bank = new Bank(bytes, true);
    for (const one of held) bank.hold(one);
    return bank;
  });
  const places = new Map<number, Place>();
  const grown = new Set<number>();
  for (const tensor of tensors) {
    const size = roundUp(storageBytes(tensor.bytes), OFFSET_ALIGNMENT);
    let best: { slot: number; offset: number; growth: number } | undefined;
    for (let slot = 0; slot < banks.length && (random || best?.growth !== 0); slot++) {
      const bank = banks[slot];
      if (conflict(conflicts.get(tensor.id), bank.ids)) continue;
      const offset = bank.lowestOffset(tensor, size);
      const growth = Math.max(0, offset + size - bank.bytes);
      if (growth > 0 && (bank.fixed || offset + size > maxBytes)) continue;
      if (growth <= size && (!best || growth < best.growth || (growth === best.growth && random && random() < 0.5))) best = { slot, offset, growth };
    }
    if (!best || (best.growth === size && random && random() < 0.5)) {
      banks.push(new Bank(0, false));
      best = { slot: banks.length - 1, offset: 0, growth: size };
    }
    const { slot, offset, growth } = best;
    if (growth > 0) grown.add(tensor.id);
    banks[slot].bytes += growth;
    banks[slot].hold({ ...tensor, bytes: size, offset });
    places.set(tensor.id, { slot, offset });
  }
  const newSlots = banks.slice(existing.length).map(({ bytes }) => Math.max(bytes, Math.min(maxBytes, roundUp(bytes, GRANULE))));
  return { places, newSlots, grown, bytes: newSlots.reduce((sum, size) => sum + size, 0) };
}

function conflict(partners: ReadonlySet<number> | undefined, ids: ReadonlySet<number>): boolean {
  if (partners) for (const id of partners) if (ids.has(id)) return true;
  return false;
}

/** The most bytes that are needed at one time: no plan can do with less. */
export function largestSum(tensors: readonly Lifetime[]): number {
  const changes = tensors.flatMap(({ bytes, start, end }) => [{ at: start, bytes }, { at: end + 1, bytes: -bytes }]);
  changes.sort((a, b) => (a.at === b.at ? a.bytes - b.bytes : a.at - b.at));
  let [sum, most] = [0, 0];
  for (const { bytes } of changes) most = Math.max(most, sum += bytes);
  return most;
}
