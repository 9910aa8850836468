// A device's memory, and where it comes from.

/** A piece of it: a buffer, a texture. */
export interface Memory {
  /** In bytes. */
  readonly size: number;
}

/** Where an id lies. */
export interface Placement<M extends Memory = Memory> {
  readonly buffer: M;
  readonly offset: number;
}

/** Where memory comes from, and goes to when it is no longer needed. */
export interface MemoryCache<M extends Memory = Memory> {
  /** At least `bytes` bytes, or exactly so many, whose contents may be anything. */
  acquire(bytes: number, label: string, exact?: boolean): M;
  /** The same, all zeros. */
  acquireZeros(bytes: number, label: string): M;
  /** The device may still be at work with it. */
  release(memory: M): void;
}
