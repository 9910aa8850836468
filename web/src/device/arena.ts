// The physical buffers of a session's virtual tensors. All recordings of a session share them, because their contents
// do not outlive a run. Exceptions are a recording's own buffers, with the results that its first run made for all
// later ones.
import type { Memory, MemoryCache } from './memory';
import type { Held, Lifetime, Place } from './memory_plan';
import { EarlierPlans } from './earlier_plans';
import type { Room } from './fixed_part';
import { type Access, planKept, planSegment, type SegmentPlan } from './segment_plan';

export interface ArenaSlot {
  readonly buffer: Memory;
  readonly bytes: number;
  /** The number of recordings that use it. */
  users: number;
  /** The kind of its contents, if one recording owns it. */
  readonly kept?: keyof Room;
}

/** The place of a tensor. */
export interface ArenaPlace {
  readonly slot: ArenaSlot;
  readonly offset: number;
}

interface ArenaPlan {
  readonly places: ReadonlyMap<number, ArenaPlace>;
  readonly plan: SegmentPlan;
}

/** The bytes that all recordings together may keep: a share of the most that is needed at one time. */
const KEPT_SHARE = 0.03;
/** The bytes that each may keep in any case. */
const KEPT_LEAST = 64 << 10;
/**
 * The bytes that all may keep in addition for values derived from weights: beyond the weights' own size, but slow to
 * compute.
 */
const KEPT_OF_WEIGHTS = 128 << 20;

function at(slots: readonly ArenaSlot[]): (place: [number, Place]) => [number, ArenaPlace] {
  return ([id, { slot, offset }]) => [id, { slot: slots[slot], offset }];
}

export class Arena {
  private slots: ArenaSlot[] = [];
  private readonly earlier = new EarlierPlans<ArenaPlace>();
  /**
   * The most bytes that tensors needed at one time, in any recording, without those derived from weights; an output in
   * an input's place counts once.
   */
  peak = 0;

  constructor(
    private readonly cache: Pick<MemoryCache, 'acquire' | 'release'>,
    private readonly maxBufferSize: number,
  ) {}

  /**
   * Finds a place for each tensor, and makes buffers where needed.
   * @param accesses of the commands between which the tensors live.
   * @param held contents of slots that are still needed; other slots are free.
   * @param kept the tensors that get their own slots.
   * @param ofWeights tensors that count as derived from weights.
   */
  place(
    tensors: readonly Lifetime[],
    accesses: readonly Access[],
    held: ReadonlyMap<ArenaSlot, readonly Held[]>,
    kept: ReadonlySet<number> = new Set(),
    ofWeights: ReadonlySet<number> = new Set(),
  ): { places: Map<number, ArenaPlace>; plan: SegmentPlan } {
    const own = (['ofWeights', 'others'] as const).flatMap((account) => {
      const plan = planKept(
        tensors.filter(({ id }) => kept.has(id) && ofWeights.has(id) === (account === 'ofWeights')),
        accesses,
        this.maxBufferSize,
      );
      const slots = plan.newSlots.map((bytes) => this.add(bytes, account));
      return [...plan.places].map(at(slots));
    });
    const rest = tensors.filter(({ id }) => !kept.has(id));
    const { places, plan } = held.size === 0 ? this.placeAlike(rest, accesses) : this.placeAnew(rest, accesses, held);
    return { places: new Map([...own, ...places]), plan };
  }

  /** The places of an earlier segment, if one differs in sizes only. */
  private placeAlike(tensors: readonly Lifetime[], accesses: readonly Access[]): ArenaPlan {
    const there = new Set(this.slots);
    const earlier = this.earlier.find(tensors, accesses, ({ slot }) => there.has(slot));
    if (earlier) return earlier;
    const roomy = this.earlier.withRoom(tensors, accesses);
    const made = { tensors: roomy, accesses, ...this.placeAnew(roomy, accesses, new Map()) };
    this.earlier.remember(made);
    return made;
  }

  private placeAnew(
    tensors: readonly Lifetime[],
    accesses: readonly Access[],
    held: ReadonlyMap<ArenaSlot, readonly Held[]>,
  ): ArenaPlan {
    const shared = this.slots.filter((slot) => !slot.kept);
    const existing = shared.map((slot) => ({ bytes: slot.bytes, held: held.get(slot) ?? [] }));
    const plan = planSegment(tensors, accesses, existing, this.maxBufferSize);
    this.peak = Math.max(this.peak, plan.peak + this.kept('others'));
    shared.push(...plan.newSlots.map((bytes) => this.add(bytes)));
    return { places: new Map([...plan.places].map(at(shared))), plan };
  }

  private add(bytes: number, kept?: keyof Room): ArenaSlot {
    const buffer = this.cache.acquire(bytes, 'arena', true);
    const slot = { buffer, bytes: buffer.size, users: 0, kept };
    this.slots.push(slot);
    return slot;
  }

  /** The bytes that a recording may keep if its tensors need at most `sum` bytes at one time. */
  roomToKeep(sum: number): Room {
    return {
      ofWeights: KEPT_OF_WEIGHTS - this.bytesOfWeights,
      others: Math.max(KEPT_LEAST, KEPT_SHARE * sum - this.kept('others')),
    };
  }

  private kept(account: keyof Room): number {
    return this.slots.reduce((sum, slot) => sum + (slot.kept === account ? slot.bytes : 0), 0);
  }

  /** A recording that used these slots is gone. */
  release(slots: Iterable<ArenaSlot>): void {
    for (const slot of slots) slot.users--;
    for (const slot of this.slots) if (slot.users <= 0) this.cache.release(slot.buffer);
    this.slots = this.slots.filter(({ users }) => users > 0);
  }

  /** Without tensors derived from weights. */
  get bytes(): number {
    return this.slots.reduce((sum, slot) => sum + (slot.kept === 'ofWeights' ? 0 : slot.bytes), 0);
  }

  /** Tensors derived from weights: they count as weights. */
  get bytesOfWeights(): number {
    return this.kept('ofWeights');
  }

  destroy(): void {
    for (const { buffer } of this.slots) this.cache.release(buffer);
    this.slots = [];
  }
}
