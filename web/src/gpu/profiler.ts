// How long each dispatch takes, by timestamps around passes of its own. For looking at a run, not for running: it costs
// the overlap. Devices without timestamp-query get the same rows without times.
import type { Tiling } from '../contract/kernel';
import type { BufferCaches } from './buffer_cache';
import type { Gpu } from './device';

export interface ProfileRow {
  /** The shader's name. */
  readonly kernel: string;
  readonly workgroups: readonly [number, number, number];
  /** Undefined where the device has no timestamps. */
  readonly ms?: number;
  /** When it began, on the page's clock: the first dispatch is taken to begin when it was submitted. */
  readonly start_ms?: number;
  /** The kernel instance that asked for it, and (outside of gpu/) the node that this belongs to. */
  readonly instance?: number;
  readonly tiling?: Tiling;
  readonly node?: string;
  readonly op_type?: string;
  readonly node_index?: number;
}

/** WebGPU's limit of a query set. */
const QUERIES = 4096;
const TIMESTAMP_BYTES = 8;

export class Profiler {
  private readonly rows: ProfileRow[] = [];
  private readonly sets: GPUQuerySet[] = [];
  private readonly readings: { readonly resolved: GPUBuffer; readonly staging: GPUBuffer; readonly size: number }[] =
    [];

  /** When the work was submitted; set it then. */
  submittedAt = 0;
  private readonly timed: boolean;

  constructor(
    private readonly gpu: Gpu,
    private readonly caches: BufferCaches,
  ) {
    this.timed = gpu.device.features.has('timestamp-query');
  }

  /** A pass for one dispatch. */
  beginPass(encoder: GPUCommandEncoder, row: ProfileRow): GPUComputePassEncoder {
    const { kernel } = row;
    const first = (2 * this.rows.push(row) - 2) % QUERIES;
    if (!this.timed) return encoder.beginComputePass({ label: kernel });
    if (first === 0) this.sets.push(this.gpu.device.createQuerySet({ type: 'timestamp', count: QUERIES }));
    const querySet = this.sets[this.sets.length - 1];
    return encoder.beginComputePass({
      label: kernel,
      timestampWrites: { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 },
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
    if (!this.timed) return this.rows;
    const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;
    return this.rows.map((row, i) => ({
      ...row,
      ms: milliseconds(times[2 * i], times[2 * i + 1]),
      start_ms: this.submittedAt + milliseconds(times[0], times[2 * i]),
    }));
  }
}
