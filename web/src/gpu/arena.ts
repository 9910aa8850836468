// The physical buffers behind a session's virtual tensors. All recordings of a session share them: nothing in them outlives a run.
import type { BufferCache } from './buffer_cache';
import { type Lifetime, planMemory } from './memory_plan';

export interface ArenaSlot {
  readonly buffer: GPUBuffer;
  readonly bytes: number;
  /** How many recordings count on it. */
  users: number;
}

export class Arena {
  private slots: ArenaSlot[] = [];

  constructor(private readonly cache: BufferCache, private readonly maxBufferSize: number) {}

  /**
   * Finds a slot for each tensor, making buffers where needed.
   * @param busyUntil the last command that needs what a slot holds now; slots that are not in it are free.
   */
  place(tensors: readonly Lifetime[], busyUntil: ReadonlyMap<ArenaSlot, number>): Map<number, ArenaSlot> {
    const existing = this.slots.map((slot) => ({ bytes: slot.bytes, busyUntil: busyUntil.get(slot) ?? -Infinity }));
    const plan = planMemory(tensors, existing, this.maxBufferSize);
    for (const bytes of plan.newSlots) {
      const buffer = this.cache.acquire(bytes, 'arena');
      this.slots.push({ buffer, bytes: buffer.size, users: 0 });
    }
    return new Map([...plan.slotOf].map(([id, i]) => [id, this.slots[i]]));
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
