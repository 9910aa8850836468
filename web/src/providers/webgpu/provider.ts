// The parts of one open device: everything that a session or a single kernel needs of the GPU.
import { roundUp } from '../../device/memory_plan';
import { BufferCaches, type BufferCacheStats, type CacheModes } from './buffer_cache';
import { BufferTable } from '../../device/buffers';
import type { Placement } from '../../device/memory';
import type { Counters } from '../../device/counters';
import type { DeviceProvider, Heads } from '../../device/provider';
import type { ElementForms } from '../../contract/elements';
import type { ErrorPlace, RuntimeError } from '../../errors';
import { copyRows } from './copy_rows';
import { type DeviceDescription, type DeviceOptions, type Gpu, openGpu } from './device';
import { PipelineCache } from './pipelines';
import { Readback } from './readback';
import { gpuError } from './scopes';
import type { GpuPlacement } from './segment';

export const NAME = 'webgpu';

type RowsAt = readonly [GpuPlacement, number];

/**
 * Bytes of staging buffers to keep: a small download that must make its buffer first takes twice as long on hardware.
 */
const KEPT_BYTES = 1 << 20;

/** Nothing is cached: for a page without options. */
const NO_CACHES: CacheModes = {
  storage: 'disabled',
  uniform: 'disabled',
  queryResolve: 'disabled',
  default: 'disabled',
};

export class GpuProvider implements DeviceProvider {
  readonly name = NAME;
  readonly pipelines: PipelineCache;
  readonly buffers = new BufferTable<GPUBuffer>();
  /** For memory that belongs to no session: tensors of IO binding, single kernels. */
  readonly caches: BufferCaches;
  /** For occasional reads. */
  readonly readback: Readback;
  private readonly cachesByModes = new Map<string, BufferCaches>();

  constructor(
    readonly gpu: Gpu,
    modes: CacheModes = NO_CACHES,
  ) {
    this.pipelines = new PipelineCache(gpu);
    this.caches = this.cachesFor(modes);
    this.readback = new Readback(gpu, this.caches.default, KEPT_BYTES);
  }

  static async open(options?: DeviceOptions): Promise<GpuProvider> {
    return new GpuProvider(await openGpu(options));
  }

  /** The caches of these modes, which sessions share; `enter` them. */
  cachesFor(modes: CacheModes): BufferCaches {
    const key = Object.values(modes).join();
    const known = this.cachesByModes.get(key);
    if (known) return known;
    const made = new BufferCaches(this.gpu, modes);
    this.cachesByModes.set(key, made);
    return made;
  }

  enter(): void {
    this.caches.enter();
  }

  leave(): void {
    this.readback.destroy();
    this.caches.leave();
    this.gpu.flush();
  }

  flush(): void {
    this.gpu.flush();
  }

  get bytes(): number {
    const waiting = [...this.cachesByModes.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    return this.buffers.bytes + this.readback.bytes + waiting;
  }

  get cacheStats(): BufferCacheStats {
    return this.caches.stats;
  }

  get description(): DeviceDescription {
    return this.gpu.description;
  }

  get counters(): Counters {
    return this.gpu.counters;
  }

  get elements(): ElementForms {
    return this.gpu.elements;
  }

  get limits(): { buffer: number; binding: number } {
    return { buffer: this.gpu.device.limits.maxBufferSize, binding: this.gpu.traits.maxStorageBindingSize };
  }

  get lost(): string | undefined {
    return this.gpu.lost;
  }

  ensureAlive(): void {
    this.gpu.ensureAlive();
  }

  failure(error: unknown): Promise<unknown> {
    return this.gpu.failure(error);
  }

  complaint(messages: readonly string[], place?: ErrorPlace): RuntimeError {
    return gpuError(messages, place);
  }

  write({ buffer, offset }: Placement, bytes: Uint8Array): void {
    this.gpu.write(buffer as GPUBuffer, offset, bytes);
  }

  allocate(bytes: number): number {
    return this.buffers.allocate(bytes, this.caches.storage, 'JsepAlloc', true);
  }

  async copy(source: number, target: number, bytes: number): Promise<void> {
    const [from, to] = [this.buffers.get(source), this.buffers.get(target)];
    const encoder = this.gpu.device.createCommandEncoder();
    encoder.copyBufferToBuffer(from.buffer, from.offset, to.buffer, to.offset, roundUp(bytes, 4));
    this.gpu.submit([encoder.finish()]);
  }

  makeMemory(label: string, size: number): GPUBuffer {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    return this.gpu.createBuffer({ label, size, usage });
  }

  copyRows(heads: Heads, rows: number, from: readonly [Placement, number], to: readonly [Placement, number]): void {
    const encoder = this.gpu.device.createCommandEncoder();
    copyRows(encoder, heads, rows, from as RowsAt, to as RowsAt);
    this.gpu.submit([encoder.finish()]);
  }

  async read(id: number, bytes: number): Promise<Uint8Array> {
    const encoder = this.gpu.device.createCommandEncoder();
    const pending = this.readback.encode(encoder, [{ ...this.buffers.get(id), bytes }]);
    this.gpu.submit([encoder.finish()]);
    return pending.finish(([part]) => part.slice());
  }
}
