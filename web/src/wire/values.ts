// Values, in messages and for callers.
import type { DType, ValueKind } from '../schema';

export interface TensorOnCpu {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** Little-endian elements in C order; for strings a uint32 byte length, then UTF-8, each. */
  readonly data: Uint8Array;
}

export interface TensorOnGpu {
  readonly dtype: DType;
  readonly dims: readonly number[];
  /** A persistent buffer of the session's device. */
  readonly gpuId: number;
}

export type Tensor = TensorOnCpu | TensorOnGpu;

/** A sequence, or an optional with one item or none. Its tensors are on the CPU. */
export interface Container {
  readonly kind: ValueKind.sequence | ValueKind.optional;
  /** The type of its tensors, in case there are none. */
  readonly dtype: DType;
  readonly items: readonly Value[];
}

export type Value = Tensor | Container;

export function isContainer<T extends object>(value: T | Container): value is Container {
  return 'items' in value;
}

export function isOnGpu(value: Value): value is TensorOnGpu {
  return 'gpuId' in value;
}

/** The value of this name. A model may use the name "constructor", which every object has. */
export function named<T>(values: { readonly [name: string]: T } | undefined, name: string): T | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined;
}
