// A call of a kernel: the interface of the code that provides its memory, and the result.
import { type Forms, elementCount, hasGpuForm } from '../contract/elements';
import type { Tensor, TileTable } from '../contract/kernel';
import type { DType } from '../schema';
import type { Command } from './commands';

/** Provides a kernel call's memory: the core in a session, the page itself for a single kernel. */
export interface Host {
  /** Makes output i and returns its id. */
  output(i: number, dtype: DType, dims: readonly number[], bytes: number): number;
  /** Makes output i the same memory as input j. */
  view(i: number, j: number, dims: readonly number[]): void;
  /** Scratch memory until the call's last command; `ofWeights`: see Context. */
  temp(bytes: number, ofWeights: boolean): number;
  /** True if output i is in the same place as input j; see Context. */
  boundInPlace?(i: number, j: number): boolean;
  /** See Context. */
  readonly rowsBefore?: Tensor;
  /** True if dispatches are not checked. */
  readonly unchecked?: boolean;
  /** The session's tiles. */
  readonly tiles?: TileTable;
}

export interface CallInput {
  readonly tensor: Tensor;
  /** The elements of a host input. */
  readonly bytes?: Uint8Array;
}

export interface Resolved {
  readonly commands: Command[];
  /** The host inputs that the kernel read: the result is valid for these contents only. */
  readonly hostReads: Set<number>;
  /** The tests that it made of others: the result is valid as long as their answers are the same. */
  readonly hostTests: HostTest[];
}

export interface HostTest {
  readonly index: number;
  readonly test: (elements: readonly number[]) => boolean;
  readonly answer: boolean;
  /** The elements tested last. */
  seen: readonly number[];
}

export function makeTensor(
  forms: Forms,
  id: number,
  dtype: DType,
  dims: readonly number[],
  location: Tensor['location'],
): Tensor {
  const form = hasGpuForm(dtype)
    ? { storage: forms.storage(dtype), packing: forms.packing(dtype) }
    : { storage: 'u32' as const };
  return { id, dtype, dims: [...dims], size: elementCount(dims), ...form, location };
}
