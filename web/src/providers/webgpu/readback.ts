// From the GPU to JavaScript: all tensors that are read together use one staging buffer and one mapAsync.
import type { Gpu } from './device';
import type { BufferCache } from './buffer_cache';
import { roundUp } from '../../device/memory_plan';
import type { PendingReadback } from '../../device/provider';
import { pump } from './pump';
import type { GpuPlacement } from './segment';

type Download = GpuPlacement & { readonly bytes: number };

export class Readback {
  private readonly idle: GPUBuffer[] = [];

  /** @param kept bytes of staging buffers kept here for the next time; further ones return to the cache. */
  constructor(
    private readonly gpu: Gpu,
    private readonly cache: BufferCache,
    private readonly kept: number,
  ) {}

  /** Encodes the copies; call `finish` after their submit. */
  encode(encoder: GPUCommandEncoder, downloads: readonly Download[]): PendingReadback {
    const offsets: number[] = [];
    let size = 0;
    for (const { bytes } of downloads) {
      offsets.push(size);
      size += roundUp(bytes, 16);
    }
    if (size === 0) return { finish: async (use) => use(downloads.map(() => new Uint8Array(0))) };
    const staging = this.take(size);
    downloads.forEach(({ buffer, offset, bytes }, i) => {
      if (bytes > 0) encoder.copyBufferToBuffer(buffer, offset, staging, offsets[i], roundUp(bytes, 4));
    });
    this.gpu.counters.downloads += downloads.length;
    return { finish: (use) => this.finish(staging, downloads, offsets, size, use) };
  }

  private async finish<T>(
    staging: GPUBuffer,
    downloads: readonly Download[],
    offsets: readonly number[],
    size: number,
    use: (parts: Uint8Array[]) => T,
  ): Promise<T> {
    try {
      await pump(this.gpu, staging.mapAsync(GPUMapMode.READ, 0, size));
    } catch (error) {
      staging.destroy();
      throw await this.gpu.failure(error);
    }
    const mapped = staging.getMappedRange(0, size);
    try {
      return use(downloads.map(({ bytes }, i) => new Uint8Array(mapped, offsets[i], bytes)));
    } finally {
      staging.unmap();
      if (this.cache.open && this.bytes + staging.size <= this.kept) this.idle.push(staging);
      else this.cache.release(staging);
    }
  }

  /** The smallest idle staging buffer that is large enough, otherwise a new one. */
  private take(size: number): GPUBuffer {
    let best = -1;
    this.idle.forEach((buffer, i) => {
      if (buffer.size >= size && (best < 0 || buffer.size < this.idle[best].size)) best = i;
    });
    if (best >= 0) return this.idle.splice(best, 1)[0];
    // A buffer that is too small is replaced, not kept.
    const small = this.idle.pop();
    if (small) this.cache.release(small);
    return this.cache.acquire(roundUp(size, 4096), 'staging');
  }

  /** Bytes kept for the next time. */
  get bytes(): number {
    return this.idle.reduce((sum, { size }) => sum + size, 0);
  }

  destroy(): void {
    for (const buffer of this.idle.splice(0)) this.cache.release(buffer);
  }
}
