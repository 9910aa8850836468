// A device's memory that outlives runs: weights, tensors of IO binding, outputs left there, the page's own buffers. Ids
// count up from 1. A buffer keeps its id for ever, even while it is in a cache or the page has it: recordings use the
// id again.
import { invalid } from '../errors';
import type { Memory, MemoryCache, Placement } from './memory';

/** Ids from here on are virtual: they belong to a run (recorder.ts). */
export const FIRST_VIRTUAL_ID = 0x40000000;

export interface TensorMemory<M extends Memory = Memory> extends Placement<M> {
  /** The requested size. */
  readonly bytes: number;
  /**
   * Receives the buffer when the tensor is freed. Without an owner the buffer belongs to other code: a session's
   * weights, the page.
   */
  readonly owner?: MemoryCache<M>;
  /** Its bytes never change: a weight's. */
  readonly constant?: boolean;
}

/** A tensor that gets a buffer of its own on first use. */
export interface LaidLater<M extends Memory = Memory> {
  /** Bytes that it will have. */
  readonly bytes: number;
  lay(): TensorMemory<M>;
  /** It is freed before its first use. */
  free(): void;
}

/** Shared by all devices of the page: an id also identifies its device. */
let nextId = 1;

/** A worker that replaces another numbers its buffers differently: numbers of lost buffers are invalid here. */
export function firstBufferId(id: number): void {
  nextId = id;
}

const idOfMemory = new WeakMap<Memory, number>();

function newId(): number {
  return nextId++;
}

export class BufferTable<M extends Memory = Memory> {
  private readonly memory = new Map<number, TensorMemory<M> | LaidLater<M>>();
  /** Number of times that a buffer of the page's own was lent. */
  private readonly lent = new Map<number, number>();

  /** Called when the last tensor is freed. */
  onEmpty: () => void = () => undefined;

  allocate(bytes: number, cache: MemoryCache<M>, label = 'tensor', zeros = false): number {
    const buffer = zeros ? cache.acquireZeros(bytes, label) : cache.acquire(bytes, label);
    const id = this.idOf(buffer);
    this.memory.set(id, { buffer, offset: 0, bytes, owner: cache });
    return id;
  }

  /** Adds part of a buffer with another owner. */
  add(part: TensorMemory<M>): number {
    const id = newId();
    this.memory.set(id, part);
    return id;
  }

  addLater(tensor: LaidLater<M>): number {
    const id = newId();
    this.memory.set(id, tensor);
    return id;
  }

  /** The tensor, if it was added in this way and has no buffer yet. */
  later(id: number): LaidLater<M> | undefined {
    const memory = this.memory.get(id);
    return memory && 'lay' in memory ? memory : undefined;
  }

  /** Bytes from its begin to the end of its buffer. */
  room(id: number): number {
    const later = this.later(id);
    if (later) return later.bytes;
    const { buffer, offset } = this.get(id);
    return buffer.size - offset;
  }

  /** Adds a whole buffer with another owner, until `giveBack` was called as often. */
  lend(buffer: M): number {
    const id = this.idOf(buffer);
    if (!this.memory.has(id)) this.memory.set(id, { buffer, offset: 0, bytes: buffer.size });
    this.lent.set(id, (this.lent.get(id) ?? 0) + 1);
    return id;
  }

  /** True if it is the page's, which may destroy it. */
  isLent(id: number): boolean {
    return this.lent.has(id);
  }

  giveBack(id: number): void {
    const count = (this.lent.get(id) ?? 0) - 1;
    if (count > 0) {
      this.lent.set(id, count);
      return;
    }
    this.lent.delete(id);
    const memory = this.memory.get(id);
    if (memory && !isOwn(memory)) this.memory.delete(id);
  }

  private idOf(buffer: M): number {
    const id = idOfMemory.get(buffer) ?? newId();
    idOfMemory.set(buffer, id);
    return id;
  }

  has(id: number): boolean {
    return this.memory.has(id);
  }

  /** @param what the tensor's role, for errors. */
  get(id: number, what?: string): TensorMemory<M> {
    const memory = this.memory.get(id);
    if (!memory) throw noBuffer(id, what);
    if (!('lay' in memory)) return memory;
    const laid = memory.lay();
    this.memory.set(id, laid);
    return laid;
  }

  free(id: number): void {
    const memory = this.memory.get(id);
    this.memory.delete(id);
    if (!memory || !isOwn(memory)) return;
    if ('lay' in memory) memory.free();
    else memory.owner!.release(memory.buffer);
    if (this.count === 0) this.onEmpty();
  }

  /** The number of tensors that this table owns. */
  get count(): number {
    let count = 0;
    for (const memory of this.memory.values()) if (isOwn(memory)) count++;
    return count;
  }

  /** Bytes in buffers that this table owns. */
  get bytes(): number {
    let sum = 0;
    for (const memory of this.memory.values()) if ('buffer' in memory && memory.owner) sum += memory.buffer.size;
    return sum;
  }
}

/** The error for an id without memory. @param what the tensor's role. */
export function noBuffer(id: number, what?: string): Error {
  return invalid(`${what ? `${what}: ` : ''}there is no GPU buffer ${id}: it was freed, or belongs to a lost device`);
}

function isOwn(memory: TensorMemory | LaidLater): boolean {
  return 'lay' in memory || memory.owner !== undefined;
}
