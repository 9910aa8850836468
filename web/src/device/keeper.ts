// Who holds the tensors that a session left on the GPU.
import type { DType } from '../schema';

/** The thread that this module is in: where GPU buffers of the page are. */
export const HERE: object = {};

/** A tensor that a run is given. */
export interface Loan {
  readonly gpuId: number;
  /** What to do when the run has written it. */
  readonly deliver?: () => void;
  readonly giveBack?: () => void;
}

export interface TensorKeeper {
  /** HERE, or the worker that has the buffers. Numbers of buffers are those of one thread. */
  readonly thread: object;
  /** The elements, as tensors on the CPU have them. */
  download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array>;
  free(gpuId: number): void;
  /** Its buffer, with elements as pages have them; there is none in a page whose session runs in a worker. */
  buffer?(gpuId: number, dtype: DType, dims: readonly number[]): GPUBuffer;
  /** Before a run uses a tensor that a session left. @param written whether it is written, rather than read. */
  use?(gpuId: number, dtype: DType, dims: readonly number[], written: boolean): Pick<Loan, 'deliver'>;
  /** The elements in a buffer of the page's own, as tensors on the CPU have them. */
  fetch?(buffer: GPUBuffer, dtype: DType, dims: readonly number[], what: string): Promise<Uint8Array>;
  /** Lends a buffer of the page's own to a run. @param what it is, in words. */
  lend?(buffer: GPUBuffer, dtype: DType, dims: readonly number[], written: boolean, what: string): Loan;
}
