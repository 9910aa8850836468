// The GPU's time, by timestamps around passes. Either each dispatch has a pass: this is for looking at a run, since it
// prevents overlaps. Or the run's own passes are measured, for the time of the whole. Without timestamp-query there are
// the same rows of dispatches, without times.
import { type DeviceTimes, milliseconds, type PassTimes, type ProfileRow } from '../../device/profile';
import type { Timed } from '../../timeline';
import type { BufferCaches } from './buffer_cache';
import type { Gpu } from './device';

/** WebGPU's limit of a query set. */
const QUERIES = 4096;
const TIMESTAMP_BYTES = 8;

export class Profiler implements DeviceTimes {
  /** The first dispatch of each pass. */
  private readonly rows: ProfileRow[] = [];
  private readonly sets: GPUQuerySet[] = [];
  private readonly readings: { readonly resolved: GPUBuffer; readonly staging: GPUBuffer; readonly size: number }[] =
    [];

  /** The time when the work was submitted; set it then. */
  submittedAt = 0;
  /** True if each dispatch has a pass of its own. */
  readonly apart: boolean;
  private readonly hasTimestamps: boolean;

  constructor(
    private readonly gpu: Gpu,
    private readonly caches: BufferCaches,
    timed: Timed,
  ) {
    this.apart = timed === 'dispatches';
    this.hasTimestamps = gpu.device.features.has('timestamp-query');
  }

  /** A pass that begins with this dispatch. */
  beginPass(encoder: GPUCommandEncoder, row: ProfileRow): GPUComputePassEncoder {
    const { kernel } = row;
    const first = (2 * this.rows.push(row) - 2) % QUERIES;
    if (!this.hasTimestamps) return encoder.beginComputePass({ label: kernel });
    if (first === 0) this.sets.push(this.gpu.device.createQuerySet({ type: 'timestamp', count: QUERIES }));
    const querySet = this.sets[this.sets.length - 1];
    return encoder.beginComputePass({
      label: kernel,
      timestampWrites: { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 },
    });
  }

  /** Encodes the transfer of the timestamps to JavaScript; call it once, after the last pass. */
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

  /** A row for each dispatch, once the submitted work has finished. */
  async dispatches(): Promise<ProfileRow[]> {
    const times = await this.passes();
    if (!this.hasTimestamps) return this.rows;
    return this.rows.map((row, i) => {
      const [begin, end] = times[i];
      return { ...row, ms: milliseconds(begin, end), start_ms: this.submittedAt + milliseconds(times[0][0], begin) };
    });
  }

  /** Each pass, once the submitted work has finished; empty without timestamps. */
  async passes(): Promise<PassTimes[]> {
    const times: bigint[] = [];
    for (const { resolved, staging, size } of this.readings) {
      await staging.mapAsync(GPUMapMode.READ, 0, size);
      times.push(...new BigUint64Array(staging.getMappedRange(0, size).slice(0)));
      staging.unmap();
      this.caches.queryResolve.release(resolved);
      this.caches.default.release(staging);
    }
    for (const set of this.sets) set.destroy();
    return this.hasTimestamps ? this.rows.map((_, i) => [times[2 * i], times[2 * i + 1]]) : [];
  }
}
