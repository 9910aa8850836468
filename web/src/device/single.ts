// Kernels one by one, without a session: for what Python does with them.
import type { DType } from '../schema';

export interface SingleInput {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A tensor on the device, or the elements of a host input. */
  readonly data: { readonly gpuId: number } | { readonly bytes: Uint8Array };
}

/** A call of a kernel, as it would be in a session. Undefined inputs are omitted. */
export interface AskedCall {
  readonly op: string;
  readonly domain: string;
  readonly attributes: Uint8Array;
  readonly inputs: readonly (SingleInput | undefined)[];
  readonly outputs: number;
}

export interface SingleOutput {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A new tensor, the caller's to free; a view is a copy here. */
  readonly gpuId: number;
}

/** A kernel with its attributes. */
export type SingleKernel = (
  inputs: readonly (SingleInput | undefined)[],
  outputs: number,
) => Promise<readonly SingleOutput[]>;

export interface SingleKernels {
  /** @param userKernel JSON of a user's own, if it is one. @throws not_implemented where there is none. */
  make(op: string, domain: string, attributes: Uint8Array, userKernel: string): SingleKernel;
}
