// All that belongs to one open device: what a session or a single kernel needs of the GPU.
import { BufferTable } from './buffers';
import { type DeviceOptions, type Gpu, openGpu } from './device';
import { PipelineCache } from './pipelines';
import { Readback } from './readback';

export class GpuProvider {
  readonly pipelines: PipelineCache;
  readonly buffers: BufferTable;
  readonly readback: Readback;

  constructor(readonly gpu: Gpu) {
    this.pipelines = new PipelineCache(gpu);
    this.buffers = new BufferTable(gpu);
    this.readback = new Readback(gpu);
  }

  static async open(options?: DeviceOptions): Promise<GpuProvider> {
    return new GpuProvider(await openGpu(options));
  }

  /** Reads `bytes` bytes of a buffer, when all work submitted so far is done. */
  async read(id: number, bytes: number): Promise<Uint8Array> {
    const encoder = this.gpu.device.createCommandEncoder();
    const pending = this.readback.encode(encoder, [{ ...this.buffers.get(id), bytes }]);
    this.gpu.submit([encoder.finish()]);
    return pending.finish(([part]) => part.slice());
  }
}
