// Tensors that a session of this thread left on the GPU.
import type { DType } from '../schema';
import { elementCount } from '../contract/elements';
import type { GpuProvider } from '../gpu/provider';
import type { TensorKeeper } from './keeper';

export class LocalKeeper implements TensorKeeper {
  private static readonly keepers = new WeakMap<GpuProvider, LocalKeeper>();

  private constructor(readonly provider: GpuProvider) {}

  static of(provider: GpuProvider): LocalKeeper {
    const keeper = LocalKeeper.keepers.get(provider) ?? new LocalKeeper(provider);
    LocalKeeper.keepers.set(provider, keeper);
    return keeper;
  }

  async download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array> {
    const { gpu } = this.provider;
    gpu.ensureAlive();
    const bytes = await this.provider.read(gpuId, elementCount(dims) * gpu.elements.size(dtype));
    return gpu.elements.narrow(dtype, bytes);
  }

  free(gpuId: number): void {
    this.provider.buffers.free(gpuId);
  }

  buffer(gpuId: number): GPUBuffer {
    return this.provider.buffers.get(gpuId).buffer;
  }
}
