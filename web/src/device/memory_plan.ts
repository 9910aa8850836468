// Plans memory by lifetimes: the places of a segment's tensors. Pure, so that it can be tested anywhere.
//
// A buffer has several tensors at different offsets, even at the same time. WebGPU forbids one dispatch to read and
// write the same buffer, even at different offsets: such pairs conflict, and are in different buffers. The plan is
// greedy: each tensor is placed where it needs the least new memory. The result depends on the order of tensors, so
// several orders are tried, each derived from the best one so far.

export interface Lifetime {
  readonly id: number;
  readonly bytes: number;
  /** The first and the last command that need it. -1: written before the first; Infinity: needed after the last. */
  readonly start: number;
  readonly end: number;
}

/** Pairs of tensors that must be in different buffers, in both directions. */
export type Conflicts = ReadonlyMap<number, ReadonlySet<number>>;

/** A tensor in a buffer, with its offset and its lifetime. */
export interface Held extends Lifetime {
  readonly offset: number;
}

/** An existing buffer, and its contents that are still needed. */
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

/** New buffers have multiples of this size, so that slightly different shapes can share them. */
const GRANULE = 1024;
/** An offset of a binding that every device allows (minStorageBufferOffsetAlignment is at most this). */
const OFFSET_ALIGNMENT = 256;
/** With more tensors than this, only one order is tried. */
const MANY = 4000;
/** Number of tensors to place when trying other orders. */
const EFFORT = 6000;
/** Tries that build on each other. */
const CHAIN = 100;
/** Few tensors have few orders. */
const ORDERS_PER_TENSOR = 10;
/** A result within this factor of the lower bound needs no further tries. */
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

export interface PlanOptions {
  readonly conflicts?: Conflicts;
  /** Pairs that should be in different buffers if that costs no memory. */
  readonly avoid?: Conflicts;
  /** The largest buffer. */
  readonly maxBytes?: number;
  /** Factor of the usual number of orders to try. */
  readonly effort?: number;
  /** The sufficient factor of the lower bound. */
  readonly good?: number;
}

export function planMemory(
  tensors: readonly Lifetime[],
  existing: readonly Slot[] = [],
  options: PlanOptions = {},
): MemoryPlan {
  const { effort = 1, good = GOOD } = options;
  const random = randomNumbers();
  const placer = new Placer(tensors, existing, options);
  const there = existing.reduce((sum, { bytes }) => sum + bytes, 0);
  const enough = Math.max(0, good * largestSum([...tensors, ...existing.flatMap(({ held }) => held)]) - there);
  const last = tensors.reduce((latest, { end }) => (end === Infinity ? latest : Math.max(latest, end)), 0);
  const firstRanks = [
    tensors.map(({ bytes }) => bytes),
    tensors.map(({ bytes, start, end }) => bytes * (Math.min(end, last) - start + 1)),
  ];
  let best: Attempt | undefined;
  /** The current chain of tries, each of which changes the best ranks so far a little. */
  let chain: { readonly attempt: Attempt; readonly ranks: readonly number[] } | undefined;
  const count = Math.max(tensors.length, 1);
  const tries = count > MANY ? 1 : 3 + Math.floor(Math.min((EFFORT * effort) / count, ORDERS_PER_TENSOR * count));
  for (let i = 0; i < tries; i++) {
    // An unsuccessful chain ends, and another begins.
    const begins = i >= CHAIN && i % CHAIN < firstRanks.length;
    const ranks =
      firstRanks[i] ??
      (begins
        ? changedRanks(firstRanks[i % CHAIN], [], random)
        : changedRanks(chain!.ranks, chain!.attempt.grown, random));
    const attempt = placer.place(orderBy(ranks, tensors), firstRanks[i] ? undefined : random);
    if (!chain || attempt.bytes <= chain.attempt.bytes || (begins && i % CHAIN === 0)) chain = { attempt, ranks };
    if (!best || attempt.bytes < best.bytes) best = attempt;
    if (best.bytes <= enough) break;
  }
  return best!;
}

function orderBy(ranks: readonly number[], tensors: readonly Lifetime[]): number[] {
  return tensors.map((_, i) => i).sort((a, b) => ranks[b] - ranks[a] || tensors[a].start - tensors[b].start);
}

/** Moves some of the tensors that needed new memory last to the front, and a few others at random. */
function changedRanks(ranks: readonly number[], grown: readonly number[], random: () => number): number[] {
  const changed = ranks.map((rank) => (random() < 0.1 ? rank * (0.6 + 0.8 * random()) : rank));
  for (const i of grown.slice(-3)) if (random() < 0.5) changed[i] *= 1 + 2 * random();
  return changed;
}

interface Attempt extends MemoryPlan {
  readonly bytes: number;
  /** The tensors that needed new memory, by index. */
  readonly grown: readonly number[];
}

/** Numbers between 0 and 1, the same each time: equal models get equal plans. */
function randomNumbers(): () => number {
  let seed = 1;
  return () => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff;
}

/** Finds tensors with overlapping lifetimes, by windows of time, so that few must be compared. */
class Overlaps {
  private readonly byWindow = new Map<number, number[]>();
  private readonly always: number[] = [];
  private readonly known = new Map<number, number[]>();

  constructor(private readonly items: readonly Lifetime[]) {
    items.forEach((item, i) => {
      const [first, last] = windowsOf(item);
      if (last - first > 8) this.always.push(i);
      else
        for (let window = first; window <= last; window++)
          this.byWindow.set(window, [...(this.byWindow.get(window) ?? []), i]);
    });
  }

  with(i: number): readonly number[] {
    const known = this.known.get(i);
    if (known) return known;
    const { start, end } = this.items[i];
    const [first, last] = windowsOf(this.items[i]);
    const found = new Set<number>();
    const look = (list: readonly number[] = []) => {
      for (const k of list) if (k !== i && this.items[k].start <= end && start <= this.items[k].end) found.add(k);
    };
    look(this.always);
    if (last - first > this.byWindow.size) for (const list of this.byWindow.values()) look(list);
    else for (let window = first; window <= last; window++) look(this.byWindow.get(window));
    const list = [...found];
    if (this.items.length <= MANY) this.known.set(i, list);
    return list;
  }
}

function windowsOf({ start, end }: Lifetime): [number, number] {
  return [Math.floor(start / WINDOW), Math.floor(end / WINDOW)];
}

interface Choice {
  readonly slot: number;
  readonly offset: number;
  readonly growth: number;
  readonly avoided: boolean;
}

class Placer {
  /** The tensors, then the contents of existing slots. */
  private readonly items: readonly Lifetime[];
  private readonly sizes: readonly number[];
  private readonly overlaps: Overlaps;
  private readonly conflicts: readonly (readonly number[])[];
  private readonly avoid: readonly (readonly number[])[];
  private readonly maxBytes: number;

  constructor(
    private readonly tensors: readonly Lifetime[],
    private readonly existing: readonly Slot[],
    options: PlanOptions,
  ) {
    this.items = [...tensors, ...existing.flatMap(({ held }) => held)];
    this.sizes = tensors.map(({ bytes }) => roundUp(storageBytes(bytes), OFFSET_ALIGNMENT));
    this.overlaps = new Overlaps(this.items);
    this.maxBytes = options.maxBytes ?? Infinity;
    const index = new Map(this.items.map(({ id }, i) => [id, i]));
    const indexed = (pairs?: Conflicts) =>
      tensors.map(({ id }) =>
        [...(pairs?.get(id) ?? [])].flatMap((other) => (index.has(other) ? [index.get(other)!] : [])),
      );
    this.conflicts = indexed(options.conflicts);
    this.avoid = indexed(options.avoid);
  }

  /** Places each where the least new memory is needed. Without `random` the first of equally good places is used. */
  place(order: readonly number[], random?: () => number): Attempt {
    const sizes = this.existing.map(({ bytes }) => bytes);
    const slots = new Int32Array(this.items.length).fill(-1);
    const offsets = new Float64Array(this.items.length);
    let next = this.tensors.length;
    this.existing.forEach(({ held }, slot) => {
      for (const { offset } of held) {
        slots[next] = slot;
        offsets[next++] = offset;
      }
    });
    const grown: number[] = [];
    for (const i of order) {
      const size = this.sizes[i];
      let best = this.choose(i, sizes, slots, offsets, random);
      if (!best || (best.growth === size && this.conflicts[i].length > 0 && random && random() < 0.5)) {
        sizes.push(0);
        best = { slot: sizes.length - 1, offset: 0, growth: size, avoided: false };
      }
      if (best.growth > 0) grown.push(i);
      sizes[best.slot] += best.growth;
      slots[i] = best.slot;
      offsets[i] = best.offset;
    }
    const newSlots = sizes
      .slice(this.existing.length)
      .map((bytes) => Math.max(bytes, Math.min(this.maxBytes, roundUp(bytes, GRANULE))));
    const places = new Map(this.tensors.map(({ id }, i) => [id, { slot: slots[i], offset: offsets[i] }]));
    return { places, newSlots, grown, bytes: newSlots.reduce((sum, bytes) => sum + bytes, 0) };
  }

  private choose(
    i: number,
    sizes: readonly number[],
    slots: Int32Array,
    offsets: Float64Array,
    random?: () => number,
  ): Choice | undefined {
    const size = this.sizes[i];
    const overlapping: number[][] = sizes.map(() => []);
    for (const k of this.overlaps.with(i)) if (slots[k] >= 0) overlapping[slots[k]].push(k);
    const forbidden = new Set(this.conflicts[i].map((k) => slots[k]));
    const avoided = new Set(this.avoid[i].map((k) => slots[k]));
    let best: Choice | undefined;
    for (let slot = 0; slot < sizes.length && (random || best?.growth !== 0 || best.avoided); slot++) {
      if (forbidden.has(slot)) continue;
      const offset = this.lowestOffset(size, overlapping[slot], offsets);
      const growth = Math.max(0, offset + size - sizes[slot]);
      if (growth > size || (growth > 0 && (slot < this.existing.length || offset + size > this.maxBytes))) continue;
      const choice = { slot, offset, growth, avoided: avoided.has(slot) };
      if (!best || growth < best.growth) best = choice;
      else if (growth === best.growth && (choice.avoided === best.avoided ? random && random() < 0.5 : best.avoided))
        best = choice;
    }
    return best;
  }

  /** The lowest gap between tensors of the same time. */
  private lowestOffset(size: number, overlapping: number[], offsets: Float64Array): number {
    overlapping.sort((a, b) => offsets[a] - offsets[b]);
    let offset = 0;
    for (const k of overlapping) {
      if (offsets[k] - offset >= size) break;
      offset = Math.max(offset, roundUp(offsets[k] + this.items[k].bytes, OFFSET_ALIGNMENT));
    }
    return offset;
  }
}

/** The most bytes that are needed at one time: a lower bound for every plan. */
export function largestSum(tensors: readonly Lifetime[]): number {
  const changes = tensors.flatMap(({ bytes, start, end }) => [
    { at: start, bytes },
    { at: end + 1, bytes: -bytes },
  ]);
  changes.sort((a, b) => (a.at === b.at ? a.bytes - b.bytes : a.at - b.at));
  let [sum, most] = [0, 0];
  for (const { bytes } of changes) most = Math.max(most, (sum += bytes));
  return most;
}
