// Caches of GPU buffers that are no longer needed: one for each kind of buffer, and one set for all sessions of a
// device with the same modes (docs/options.md explains the modes). All long-lived objects take their buffers from a
// cache and return them there: Arena, BufferTable, uniforms, staging, timestamps. Weights do not: many share one
// buffer.
import type { Gpu } from './device';
import { roundUp, storageBytes } from '../../device/memory_plan';
import type { ProviderSettings } from '../../device/options';

export type CacheMode = ProviderSettings<'webgpu'>['defaultBufferCacheMode'];

/**
 * storage: tensors; uniform: shaders' numbers; queryResolve: timestamps; default: for bytes on their way to JavaScript.
 */
export const BUFFER_KINDS = ['storage', 'uniform', 'queryResolve', 'default'] as const;
export type BufferKind = (typeof BUFFER_KINDS)[number];
export type CacheModes = Readonly<Record<BufferKind, CacheMode>>;

export interface CacheStats {
  readonly mode: CacheMode;
  /** Cached buffers, and their bytes. */
  readonly buffers: number;
  readonly bytes: number;
  /** Requests for which a cached buffer was used, and those for which one was made. */
  readonly hits: number;
  readonly misses: number;
}

export type BufferCacheStats = Readonly<Record<BufferKind, CacheStats>>;

// As numbers, because modules must load without WebGPU: COPY_SRC 4, COPY_DST 8, UNIFORM 0x40, STORAGE 0x80,
// QUERY_RESOLVE 0x200, MAP_READ 1.
const USAGE: Readonly<Record<BufferKind, number>> = {
  storage: 0x80 | 4 | 8,
  uniform: 0x40 | 8,
  queryResolve: 0x200 | 4,
  default: 1 | 8,
};

/** The largest size of a cache; the buffer that has waited longest is dropped first. */
const MOST_BYTES = 512 << 20;
const SMALLEST_BUCKET = 256;

/** Four buckets for each power of two, so that at most a fifth of a buffer is unused. */
export function bucketBytes(bytes: number): number {
  if (bytes <= SMALLEST_BUCKET) return SMALLEST_BUCKET;
  return roundUp(bytes, 2 ** Math.floor(Math.log2(bytes)) / 4);
}

export class BufferCache {
  /** By size; the last one in each list was released last. */
  private readonly idle = new Map<number, GPUBuffer[]>();
  private released: GPUBuffer[] = [];
  private bytes = 0;
  private hits = 0;
  private misses = 0;
  /** Without users no buffer is kept. */
  open = true;

  constructor(
    private readonly gpu: Gpu,
    readonly kind: BufferKind,
    readonly mode: CacheMode,
  ) {}

  /** A buffer of at least `bytes` bytes, or exactly that many; contents are undefined. */
  acquire(bytes: number, label: string, exact = false): GPUBuffer {
    const size = exact ? storageBytes(bytes) : this.size(bytes);
    return this.take(size) ?? this.create(size, label);
  }

  /** The same, all zeros. */
  acquireZeros(bytes: number, label: string): GPUBuffer {
    const known = this.take(this.size(bytes));
    if (!known) return this.create(this.size(bytes), label);
    const encoder = this.gpu.device.createCommandEncoder();
    encoder.clearBuffer(known);
    this.gpu.submit([encoder.finish()]);
    return known;
  }

  /** The GPU may still be using it: its queue keeps the order. */
  release(buffer: GPUBuffer): void {
    if (this.mode === 'disabled' || !this.open || buffer.size > MOST_BYTES) return buffer.destroy();
    this.bytes += buffer.size;
    if (this.mode === 'lazyRelease') {
      this.released.push(buffer);
      return;
    }
    const same = this.idle.get(buffer.size);
    // Sizes in the order of their last release, for `trim`.
    this.idle.delete(buffer.size);
    this.idle.set(buffer.size, same ?? []);
    this.idle.get(buffer.size)!.push(buffer);
    this.trim(MOST_BYTES);
  }

  endOfRun(): void {
    for (const buffer of this.released.splice(0)) this.drop(buffer);
  }

  clear(): void {
    this.endOfRun();
    this.trim(0);
  }

  get stats(): CacheStats {
    const { mode, bytes, hits, misses } = this;
    const buffers = [...this.idle.values()].reduce((sum, list) => sum + list.length, this.released.length);
    return { mode, buffers, bytes, hits, misses };
  }

  private size(bytes: number): number {
    const { maxBufferSize } = this.gpu.device.limits;
    const size = this.mode === 'bucket' ? bucketBytes(bytes) : storageBytes(bytes);
    return size > maxBufferSize ? storageBytes(bytes) : size;
  }

  private take(size: number): GPUBuffer | undefined {
    const buffer = this.idle.get(size)?.pop();
    if (!buffer) return undefined;
    this.hits++;
    this.bytes -= size;
    return buffer;
  }

  private create(size: number, label: string): GPUBuffer {
    this.misses++;
    return this.gpu.createBuffer({ label, size, usage: USAGE[this.kind] });
  }

  private trim(most: number): void {
    for (const [size, list] of this.idle) {
      while (this.bytes > most && list.length > 0) this.drop(list.shift()!);
      if (list.length === 0) this.idle.delete(size);
      if (this.bytes <= most) return;
    }
  }

  private drop(buffer: GPUBuffer): void {
    this.bytes -= buffer.size;
    buffer.destroy();
  }
}

/** The caches of all sessions with these modes. */
export class BufferCaches {
  readonly storage: BufferCache;
  readonly uniform: BufferCache;
  readonly queryResolve: BufferCache;
  readonly default: BufferCache;
  private users = 0;

  constructor(gpu: Gpu, modes: CacheModes) {
    this.storage = new BufferCache(gpu, 'storage', modes.storage);
    this.uniform = new BufferCache(gpu, 'uniform', modes.uniform);
    this.queryResolve = new BufferCache(gpu, 'queryResolve', modes.queryResolve);
    this.default = new BufferCache(gpu, 'default', modes.default);
    for (const kind of BUFFER_KINDS) this[kind].open = false;
  }

  enter(): void {
    this.users++;
    for (const kind of BUFFER_KINDS) this[kind].open = true;
  }

  /** Frees the cached buffers, which no run of the others needs. */
  leave(): void {
    if (--this.users === 0) for (const kind of BUFFER_KINDS) this[kind].open = false;
    this.clear();
  }

  endOfRun(): void {
    for (const kind of BUFFER_KINDS) this[kind].endOfRun();
  }

  /** Destroys the cached buffers. */
  clear(): void {
    for (const kind of BUFFER_KINDS) this[kind].clear();
  }

  get stats(): BufferCacheStats {
    return {
      storage: this.storage.stats,
      uniform: this.uniform.stats,
      queryResolve: this.queryResolve.stats,
      default: this.default.stats,
    };
  }

  /** Bytes of cached buffers. */
  get bytes(): number {
    return BUFFER_KINDS.reduce((sum, kind) => sum + this[kind].stats.bytes, 0);
  }
}
