// Single kernels, without a session, for Python.
import type { DType } from '../schema';

export interface SingleInput {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A tensor on the device, or the elements of a host input. */
  readonly data: { readonly gpuId: number } | { readonly bytes: Uint8Array };
}

/** A call of a kernel, as in a session. Undefined inputs are omitted. */
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
  /** A new tensor, which the caller frees; a view is a copy here. */
  readonly gpuId: number;
}

/** A kernel with its attributes. */
export type SingleKernel = (
  inputs: readonly (SingleInput | undefined)[],
  outputs: number,
) => Promise<readonly SingleOutput[]>;

export interface SingleKernels {
  /** @param userKernel JSON of a user's kernel, if it is one. @throws not_implemented if there is no such kernel. */
  make(op: string, domain: string, attributes: Uint8Array, userKernel: string): SingleKernel;
}
