// Tensors [batch, heads, rows, size] in a buffer with room for more rows after each head's. Appending rows makes
// another tensor, of which the previous one is the start: existing rows are never written again. For any other use a
// tensor is copied into a buffer of its own.
import type { LaidLater, TensorMemory } from './buffers';
import type { MemoryCache } from './memory';
import type { DeviceProvider, Heads } from './provider';

/** Room is made for multiples of this many rows, and of a quarter of their number's power of two. */
const STEP = 256;

/** A buffer with room, and the number of rows per head that tensors use. */
export class RoomyBuffer {
  readonly room: number;
  readonly id: number;
  filled: number;
  private users = 0;

  private constructor(
    readonly provider: DeviceProvider,
    readonly cache: MemoryCache,
    readonly heads: Heads,
    rows: number,
  ) {
    const step = Math.max(STEP, 2 ** Math.floor(Math.log2(rows)) / 4);
    const most = Math.floor(provider.limits.binding / (heads.count * heads.rowBytes));
    this.room = Math.min(Math.ceil((rows + 1) / step) * step, most);
    this.filled = rows;
    // Unused rows may be multiplied by 0, so they must not be NaN.
    this.id = provider.buffers.allocate(heads.count * this.room * heads.rowBytes, cache, 'rows with room', true);
  }

  /** True if this number of rows can be copied one by one, and bound together. */
  static mayHold({ limits }: DeviceProvider, { count, rowBytes }: Heads, rows: number): boolean {
    return rowBytes % 4 === 0 && count * rows * rowBytes <= limits.binding;
  }

  /** A buffer that begins with these rows of a tensor. */
  static of(provider: DeviceProvider, cache: MemoryCache, heads: Heads, tensor: number, rows: number): RoomyBuffer {
    const { buffers } = provider;
    const later = buffers.later(tensor);
    const [from, fromRoom] =
      later instanceof RoomyRows ? [buffers.get(later.of.id), later.of.room] : [buffers.get(tensor), rows];
    const made = new RoomyBuffer(provider, cache, heads, rows);
    provider.copyRows(heads, rows, [from, fromRoom], [buffers.get(made.id), made.room]);
    return made;
  }

  /** Makes a tensor of its first rows; returns the id. */
  add(rows: number): number {
    this.filled = rows;
    this.users++;
    return this.provider.buffers.addLater(new RoomyRows(this, rows));
  }

  leave(): void {
    if (--this.users === 0) this.provider.buffers.free(this.id);
  }

  /** Frees the buffer, unless a tensor uses it. */
  discard(): void {
    if (this.users === 0) this.provider.buffers.free(this.id);
  }
}

export class RoomyRows implements LaidLater {
  constructor(
    readonly of: RoomyBuffer,
    readonly rows: number,
  ) {}

  get bytes(): number {
    return this.of.heads.count * this.rows * this.of.heads.rowBytes;
  }

  lay(): TensorMemory {
    const { of, rows, bytes } = this;
    const { provider, cache, heads } = of;
    const buffer = cache.acquire(bytes, 'rows');
    const laid = { buffer, offset: 0, bytes, owner: cache };
    provider.copyRows(heads, rows, [provider.buffers.get(of.id), of.room], [laid, rows]);
    of.leave();
    return laid;
  }

  free(): void {
    this.of.leave();
  }
}
