// How long each dispatch takes, by timestamps around passes of its own. For looking at a run, not for running: it costs the overlap.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
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
  private readonly staging: GPUBuffer[] = [];

  constructor(private readonly gpu: Gpu) {
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
      const resolved = this.gpu.device.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
      const staging = this.gpu.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      encoder.resolveQuerySet(set, 0, count, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
      this.staging.push(staging);
    });
  }

  /** The rows, once the submitted work is done. */
  async read(): Promise<ProfileRow[]> {
    const times: bigint[] = [];
    for (const staging of this.staging) {
      await staging.mapAsync(GPUMapMode.READ);
      times.push(...new BigUint64Array(staging.getMappedRange().slice(0)));
      staging.destroy();
    }
    for (const set of this.sets) set.destroy();
    return this.rows.map((row, i) => ({ ...row, ms: Number(times[2 * i + 1] - times[2 * i]) / 1e6 }));
  }
}
