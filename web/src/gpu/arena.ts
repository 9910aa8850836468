// The physical buffers behind a session's virtual tensors. All recordings of a session share them: nothing in them outlives a run.
import type { BufferCache } from './buffer_cache';
import type { Held, Lifetime } from './memory_plan';
import { type Access, planSegment, type SegmentPlan } from './segment_plan';

export interface ArenaSlot {
  readonly buffer: GPUBuffer;
  readonly bytes: number;
  /** How many recordings count on it. */
  users: number;
}

/** Where a tensor lies. */
export interface ArenaPlace {
  readonly slot: ArenaSlot;
  readonly offset: number;
}

export class Arena {
  private slots: ArenaSlot[] = [];
  /** The most bytes that tensors needed at one time, in any recording; an output in the place of an input counts once. */
  peak = 0;

  constructor(private readonly cache: Pick<BufferCache, 'acquire' | 'release'>, private readonly maxBufferSize: number) {}

  /**
   * Finds a place for each tensor, making buffers where needed.
   * @param accesses of the commands between which the tensors live.
   * @param held what slots hold that is still needed; slots that are not in it are free.
   */
  place(
    tensors: readonly Lifetime[], accesses: readonly Access[], held: ReadonlyMap<ArenaSlot, readonly Held[]>,
  ): { places: Map<number, ArenaPlace>; plan: SegmentPlan } {
    const existing = this.slots.map((slot) => ({ bytes: slot.bytes, held: held.get(slot) ?? [] }));
    const plan = planSegment(tensors, accesses, existing, this.maxBufferSize);
    this.peak = Math.max(this.peak, plan.peak);
    for (const bytes of plan.newSlots) {
      const buffer = this.cache.acquire(bytes, 'arena', true);
      this.slots.push({ buffer, bytes: buffer.size, users: 0 });
    }
    return { places: new Map([...plan.places].map(([id, { slot, offset }]) => [id, { slot: this.slots[slot], offset }])), plan };
  }

  /** A recording that counted on these slots is gone. */
  release(slots: Iterable<ArenaSlot>): void {
    for (const slot of slots) slot.users--;
    for (const slot of this.slots) if (slot.users <= 0) this.cache.release(slot.buffer);
    this.slots = this.slots.filter(({ users }) => users > 0);
  }

  get bytes(): number {
    return this.slots.reduce((sum, slot) => sum + slot.bytes, 0);
  }

  destroy(): void {
    for (const { buffer } of this.slots) this.cache.release(buffer);
    this.slots = [];
  }
}
