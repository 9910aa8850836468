// The physical buffers behind a session's virtual tensors. All recordings of a session share them: nothing in them outlives a run.
import type { BufferCache } from './buffer_cache';
import { type Conflicts, type Held, type Lifetime, planMemory } from './memory_plan';

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
  /** The most bytes that tensors needed at one time, in any recording. */
  peak = 0;

  constructor(private readonly cache: BufferCache, private readonly maxBufferSize: number) {}

  /**
   * Finds a place for each tensor, making buffers where needed.
   * @param held what slots hold that is still needed; slots that are not in it are free.
   * @param conflicts pairs that must not lie in one slot.
   */
  place(tensors: readonly Lifetime[], held: ReadonlyMap<ArenaSlot, readonly Held[]>, conflicts: Conflicts): Map<number, ArenaPlace> {
    const existing = this.slots.map((slot) => ({ bytes: slot.bytes, held: held.get(slot) ?? [] }));
    const plan = planMemory(tensors, existing, conflicts, this.maxBufferSize);
    for (const bytes of plan.newSlots) {
      const buffer = this.cache.acquire(bytes, 'arena', true);
      this.slots.push({ buffer, bytes: buffer.size, users: 0 });
    }
    return new Map([...plan.places].map(([id, { slot, offset }]) => [id, { slot: this.slots[slot], offset }]));
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
