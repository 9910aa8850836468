// The owner of tensors that a session left on a device.
import type { DType } from '../schema';

/** Identifies the thread of this module: the place of the page's own memory. */
export const HERE: object = {};

/** Places of tensors on devices, by onnxruntime-web's names. */
export type DeviceLocation = 'gpu-buffer' | 'ml-tensor';

/** A tensor passed to a run. */
export interface Loan {
  readonly gpuId: number;
  /** Called when the run has written it. */
  readonly deliver?: () => void;
  readonly giveBack?: () => void;
}

export interface TensorKeeper {
  /** HERE, or the worker that has the buffers. Numbers of buffers are valid in one thread. */
  readonly thread: object;
  /** The location of all its tensors. */
  readonly location: DeviceLocation;
  /** The elements, in the form of tensors on the CPU. */
  download(gpuId: number, dtype: DType, dims: readonly number[]): Promise<Uint8Array>;
  free(gpuId: number): void;
  /** True if pages can have tensors of this type; without it, every type that has a form on devices. */
  holds?(dtype: DType): boolean;
  /** Makes the browser's object of a tensor that a session left, if there is none yet: call it before `resource`. */
  settle?(gpuId: number, dtype: DType, dims: readonly number[]): Promise<void>;
  /**
   * The browser's object (a GPUBuffer, an MLTensor), with elements in the form for pages; none in a page whose session
   * runs in a worker.
   */
  resource?(gpuId: number, dtype: DType, dims: readonly number[]): object;
  /** Called before a run uses a tensor that a session left. @param written true if the run writes it. */
  use?(gpuId: number, dtype: DType, dims: readonly number[], written: boolean): Pick<Loan, 'deliver'>;
  /** The elements in one of the page's own objects, in the form of tensors on the CPU. */
  fetch?(resource: object, dtype: DType, dims: readonly number[], what: string): Promise<Uint8Array>;
  /** Lends one of the page's own objects to a run. @param what its description, for errors. */
  lend?(resource: object, dtype: DType, dims: readonly number[], written: boolean, what: string): Loan;
}
