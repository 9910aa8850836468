// A call of a kernel, as those ask for it who give it its memory, and what comes of it.
import { type Forms, elementCount, hasGpuForm } from '../contract/elements';
import type { Tensor, TileTable } from '../contract/kernel';
import type { DType } from '../schema';
import type { Command } from './commands';

/** Who gives a kernel call its memory: the core in a session, the page itself for a single kernel. */
export interface Host {
  /** Makes output i and returns its id. */
  output(i: number, dtype: DType, dims: readonly number[], bytes: number): number;
  /** Makes output i the same memory as input j. */
  view(i: number, j: number, dims: readonly number[]): void;
  /** Scratch memory until the call's last command; `ofWeights`: see Context. */
  temp(bytes: number, ofWeights: boolean): number;
  /** Whether output i lies where input j does; see Context. */
  boundInPlace?(i: number, j: number): boolean;
  /** See Context. */
  readonly rowsBefore?: Tensor;
  /** Whether dispatches are taken as they are. */
  readonly unchecked?: boolean;
  /** Of the session. */
  readonly tiles?: TileTable;
}

export interface CallInput {
  readonly tensor: Tensor;
  /** The elements, of a host input. */
  readonly bytes?: Uint8Array;
}

export interface Resolved {
  readonly commands: Command[];
  /** The host inputs that the kernel looked at: the result holds for these contents only. */
  readonly hostReads: Set<number>;
  /** What it asked of others: the result holds as long as the answers are the same. */
  readonly hostTests: HostTest[];
}

export interface HostTest {
  readonly index: number;
  readonly test: (elements: readonly number[]) => boolean;
  readonly answer: boolean;
  /** What it was asked of last. */
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
