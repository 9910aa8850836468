// The GPU memory of one session besides its weights, shared among its runs.
import { Arena } from '../../device/arena';
import type { SessionMemory } from '../../device/provider';
import type { BufferCache, BufferCaches, BufferCacheStats, CacheModes } from './buffer_cache';
import type { GpuProvider } from './provider';
import { Readback } from './readback';

export class GpuSessionMemory implements SessionMemory {
  readonly caches: BufferCaches;
  readonly arena: Arena;
  /** Keeps the staging buffers of outputs, so that a replay makes no objects. */
  readonly readback: Readback;

  constructor(provider: GpuProvider, modes: CacheModes) {
    const { gpu } = provider;
    this.caches = provider.cachesFor(modes);
    this.caches.enter();
    this.arena = new Arena(this.caches.storage, gpu.device.limits.maxBufferSize);
    this.readback = new Readback(gpu, this.caches.default, Infinity);
  }

  get cacheStats(): BufferCacheStats {
    return this.caches.stats;
  }

  get tensors(): BufferCache {
    return this.caches.storage;
  }

  get bytes(): number {
    return this.arena.bytes + this.arena.bytesOfWeights + this.readback.bytes;
  }

  clear(): void {
    this.caches.clear();
  }

  destroy(): void {
    this.arena.destroy();
    this.readback.destroy();
    this.caches.leave();
  }
}
