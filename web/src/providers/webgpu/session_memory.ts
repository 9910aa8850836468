// The GPU memory of one session besides its weights: shared among its runs.
import { Arena } from './arena';
import type { BufferCaches, CacheModes } from './buffer_cache';
import type { GpuProvider } from './provider';
import { Readback } from './readback';

export class SessionMemory {
  readonly caches: BufferCaches;
  readonly arena: Arena;
  /** Keeps what outputs pass through, so that a replay makes nothing. */
  readonly readback: Readback;

  constructor(provider: GpuProvider, modes: CacheModes) {
    const { gpu } = provider;
    this.caches = provider.cachesFor(modes);
    this.caches.enter();
    this.arena = new Arena(this.caches.storage, gpu.device.limits.maxBufferSize);
    this.readback = new Readback(gpu, this.caches.default, Infinity);
  }

  /** Bytes that this session alone has; those in the caches are all sessions'. */
  get bytes(): number {
    return this.arena.bytes + this.arena.bytesOfWeights + this.readback.bytes;
  }

  destroy(): void {
    this.arena.destroy();
    this.readback.destroy();
    this.caches.leave();
  }
}
