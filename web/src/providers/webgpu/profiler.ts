// How long the GPU takes, by timestamps around passes: around one for each dispatch, which is for looking at a run, not
// for running, since it costs the overlap; or around those that a run has anyway, which says what it takes as a whole.
// Devices without timestamp-query get the same rows of dispatches without times.
import type { Tiling } from '../../contract/kernel';
import type { Timed } from '../../timeline';
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

/** What the GPU took for a run. */
export interface GpuTime {
  readonly passes: number;
  /** The passes, without what lies between them. */
  readonly ms: number;
  /** From the begin of the first one to the end of the last. */
  readonly span_ms: number;
}

/** When a pass began and ended, in nanoseconds of the GPU's clock. */
type PassTimes = readonly [begin: bigint, end: bigint];

/** WebGPU's limit of a query set. */
const QUERIES = 4096;
const TIMESTAMP_BYTES = 8;

export class Profiler {
  /** The first dispatch of each pass. */
  private readonly rows: ProfileRow[] = [];
  private readonly sets: GPUQuerySet[] = [];
  private readonly readings: { readonly resolved: GPUBuffer; readonly staging: GPUBuffer; readonly size: number }[] =
    [];

  /** When the work was submitted; set it then. */
  submittedAt = 0;
  /** Whether each dispatch is to have a pass of its own. */
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

  /** The rows of dispatches apart, once the submitted work is done. */
  async dispatches(): Promise<ProfileRow[]> {
    const times = await this.passes();
    if (!this.hasTimestamps) return this.rows;
    return this.rows.map((row, i) => {
      const [begin, end] = times[i];
      return { ...row, ms: milliseconds(begin, end), start_ms: this.submittedAt + milliseconds(times[0][0], begin) };
    });
  }

  /** Each pass, once the submitted work is done; none without timestamps. */
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

const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/** Of passes in their order; undefined of none. */
export function gpuTime(passes: readonly PassTimes[]): GpuTime | undefined {
  if (passes.length === 0) return undefined;
  return {
    passes: passes.length,
    ms: passes.reduce((sum, [begin, end]) => sum + milliseconds(begin, end), 0),
    span_ms: milliseconds(passes[0][0], passes[passes.length - 1][1]),
  };
}
