// How long each dispatch takes, by timestamps around passes of its own. For looking at a run, not for running: it costs the overlap.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import type { BufferCaches } from './buffer_cache';
import type { Gpu } from './device';

export interface ProfileRow {
  /** The shader's name. */
  readonly kernel: string;
  readonly workgroups: readonly [number, number, number];
  readonly ms: number;
}

/** WebGPU's limit of a query set. */
const QUERIES = 4096;
const TIMESTAMP_BYTES = 8;

export class Profiler {
  private readonly rows: { kernel: string; workgroups: readonly [number, number, number] }[] = [];
  private readonly sets: GPUQuerySet[] = [];
  private readonly readings: { readonly resolved: GPUBuffer; readonly staging: GPUBuffer; readonly size: number }[] = [];

  constructor(private readonly gpu: Gpu, private readonly caches: BufferCaches) {
    if (!gpu.device.features.has('timestamp-query')) {
      throw new RuntimeError(ErrorCode.not_implemented, 'this device has no timestamp-query: runs cannot be profiled on it');
    }
  }

  /** A pass for one dispatch. */
  beginPass(encoder: GPUCommandEncoder, kernel: string, workgroups: readonly [number, number, number]): GPUComputePassEncoder {
    const first = (2 * this.rows.push({ kernel, workgroups }) - 2) % QUERIES;
    if (first === 0) this.sets.push(this.gpu.device.createQuerySet({ type: 'timestamp', count: QUERIES }));
    const querySet = this.sets[this.sets.length - 1];
    return encoder.beginComputePass({
      label: kernel, timestampWrites: { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 },
    });
  }

  /** Encodes the way of the timestamps to JavaScript; call it once, after the last pass. */
  resolve(encoder: GPUCommandEncoder): void {
    this.sets.forEach((set, i) => {
      const count = Math.min(QUERIES, 2 * this.rows.length - i * QUERIES);
      const size = count * TIMESTAMP_BYTES;
      const resolved = this.caches.queryResolve.acquire(size, 'timestamps');
      const staging = this.caches.default.acquire(size, 'timestamps');
      encoder.resolveQuerySet(set, 0, count, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
      this.readings.push({ resolved, staging, size });
    });
  }

  /** The rows, once the submitted work is done. */
  async read(): Promise<ProfileRow[]> {
    const times: bigint[] = [];
    for (const { resolved, staging, size } of this.readings) {
      await staging.mapAsync(GPUMapMode.READ, 0, size);
      times.push(...new BigUint64Array(staging.getMappedRange(0, size).slice(0)));
      staging.unmap();
      this.caches.queryResolve.release(resolved);
      this.caches.default.release(staging);
    }
    for (const set of this.sets) set.destroy();
    return this.rows.map((row, i) => ({ ...row, ms: Number(times[2 * i + 1] - times[2 * i]) / 1e6 }));
  }
}
