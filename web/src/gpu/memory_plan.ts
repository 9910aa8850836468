// Memory from lifetimes: which tensors of a segment share a physical buffer. Pure, so that it can be tested anywhere.
//
// One buffer holds one tensor at a time, from offset 0: WebGPU forbids one dispatch to read and write the same buffer, even at
// different offsets, so an arena with offsets is out. Greedy by size, biggest first, best fit.

export interface Lifetime {
  readonly id: number;
  readonly bytes: number;
  /** The commands between which it must be kept, both included. -1: written before the first; Infinity: needed after the last. */
  readonly start: number;
  readonly end: number;
}

/** A physical buffer that exists already. */
export interface Slot {
  readonly bytes: number;
  /** The last command that still needs what it holds now; -Infinity when it is free, Infinity when it stays taken. */
  readonly busyUntil: number;
}

export interface MemoryPlan {
  /** Slot of each tensor: an index into the existing slots followed by the new ones. */
  readonly slotOf: Map<number, number>;
  /** Sizes of the buffers to make. */
  readonly newSlots: number[];
}

/** New buffers come in steps of this size, so that shapes that differ a little can share them. */
const GRANULE = 4096;

export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** Bytes of the storage of a tensor: never empty (bindings must not be), and always whole vec4s. */
export function storageBytes(bytes: number): number {
  return Math.max(16, roundUp(bytes, 16));
}

export function planMemory(tensors: readonly Lifetime[], existing: readonly Slot[], maxBytes = Infinity): MemoryPlan {
  const slots = existing.map(({ bytes, busyUntil }) => ({ bytes, taken: busyUntil === -Infinity ? [] : [[-1, busyUntil]] }));
  const slotOf = new Map<number, number>();
  const newSlots: number[] = [];
  const biggestFirst = [...tensors].sort((a, b) => b.bytes - a.bytes || a.start - b.start);
  for (const { id, bytes, start, end } of biggestFirst) {
    let best = -1;
    slots.forEach((slot, i) => {
      if (slot.bytes < bytes || (best >= 0 && slot.bytes >= slots[best].bytes)) return;
      if (slot.taken.every(([from, to]) => end < from || to < start)) best = i;
    });
    if (best < 0) {
      const size = bytes <= maxBytes ? Math.min(maxBytes, bytes < GRANULE ? roundUp(bytes, 256) : roundUp(bytes, GRANULE)) : bytes;
      best = slots.push({ bytes: size, taken: [] }) - 1;
      newSlots.push(size);
    }
    slots[best].taken.push([start, end]);
    slotOf.set(id, best);
  }
  return { slotOf, newSlots };
}
