// Sets of dtypes for the `types` of kernels, and the wrapping of narrow integers after arithmetic.
import { DType } from '../../../schema';
import type { DTypeName } from '../../../contract/kernel';

export const FLOATS = ['float32', 'float16'] as const satisfies readonly DTypeName[];
export const SIGNED = ['int64', 'int32', 'int16', 'int8'] as const satisfies readonly DTypeName[];
export const UNSIGNED = ['uint64', 'uint32', 'uint16', 'uint8'] as const satisfies readonly DTypeName[];
export const INTEGERS = [...SIGNED, ...UNSIGNED] as const;
export const NUMBERS = [...FLOATS, ...INTEGERS] as const;
export const BOOL = ['bool'] as const satisfies readonly DTypeName[];
/** All types with a form on the GPU. */
export const ALL = [...NUMBERS, ...BOOL] as const;
/** For a host input: any type. */
export const HOST: readonly DTypeName[] = [];

/** Bits of integers that are narrower than their 32 bits on the GPU. */
const NARROW: { readonly [dtype: number]: { readonly bits: number; readonly signed: boolean } } = {
  [DType.int8]: { bits: 8, signed: true },
  [DType.int16]: { bits: 16, signed: true },
  [DType.uint8]: { bits: 8, signed: false },
  [DType.uint16]: { bits: 16, signed: false },
};

/** The dtype if it is narrower than its storage, as part of a spec: its arithmetic must wrap around (see wrapped). */
export function narrowType(dtype: DType): DType | undefined {
  return NARROW[dtype] && dtype;
}

/** WGSL of `value` wrapped around to the range of a narrow dtype; unchanged for others. */
export function wrapped(dtype: DType | undefined, value: string): string {
  const type = dtype === undefined ? undefined : NARROW[dtype];
  if (!type) return value;
  const unused = 32 - type.bits;
  return type.signed ? `(((${value}) << U(${unused})) >> U(${unused}))` : `((${value}) & U(${(1 << type.bits) - 1}))`;
}

/** Smallest and largest value of an integer dtype as it is on the GPU. */
export function integerRange(dtype: DType): readonly [number, number] {
  const type = NARROW[dtype];
  const signed = type ? type.signed : dtype === DType.int32 || dtype === DType.int64;
  const bits = type?.bits ?? 32;
  return signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
}
