// A device's memory, and its source.

/** A piece of memory: a buffer, a texture. */
export interface Memory {
  /** In bytes. */
  readonly size: number;
}

/** The place of an id. */
export interface Placement<M extends Memory = Memory> {
  readonly buffer: M;
  readonly offset: number;
}

/** Provides memory, and receives it when it is no longer needed. */
export interface MemoryCache<M extends Memory = Memory> {
  /** At least `bytes` bytes, or exactly that many; contents are undefined. */
  acquire(bytes: number, label: string, exact?: boolean): M;
  /** The same, all zeros. */
  acquireZeros(bytes: number, label: string): M;
  /** The device may still be using it. */
  release(memory: M): void;
}
