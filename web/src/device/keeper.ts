// Who holds the tensors that a session left on a device.
import type { DType } from '../schema';

/** The thread that this module is in: where memory of the page's own is. */
export const HERE: object = {};

/** Where tensors on devices are, by onnxruntime-web's names. */
export type DeviceLocation = 'gpu-buffer' | 'ml-tensor';

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
  /** Of all its tensors. */
  readonly location: DeviceLocation;
  /** The elements, as tensors on the CPU have them. */
  download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array>;
  free(gpuId: number): void;
  /** Whether pages can have tensors of this type; without it, of each type that has a form on devices. */
  holds?(dtype: DType): boolean;
  /** Makes the browser's object of a tensor that a session left, if it has none yet: before `resource`. */
  settle?(gpuId: number, dtype: DType, dims: readonly number[]): Promise<void>;
  /**
   * The browser's object (a GPUBuffer, an MLTensor), with elements as pages have them; there is none in a page whose
   * session runs in a worker.
   */
  resource?(gpuId: number, dtype: DType, dims: readonly number[]): object;
  /** Before a run uses a tensor that a session left. @param written whether it is written, rather than read. */
  use?(gpuId: number, dtype: DType, dims: readonly number[], written: boolean): Pick<Loan, 'deliver'>;
  /** The elements in an object of the page's own, as tensors on the CPU have them. */
  fetch?(resource: object, dtype: DType, dims: readonly number[], what: string): Promise<Uint8Array>;
  /** Lends an object of the page's own to a run. @param what it is, in words. */
  lend?(resource: object, dtype: DType, dims: readonly number[], written: boolean, what: string): Loan;
}
