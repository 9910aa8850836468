// Who holds the tensors that a session left on the GPU.
import type { DType } from '../schema';

export interface TensorKeeper {
  /** The elements, as tensors on the CPU have them. */
  download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array>;
  free(gpuId: number): void;
  /** Its buffer; there is none in a page whose session runs in a worker. */
  buffer?(gpuId: number): GPUBuffer;
}
