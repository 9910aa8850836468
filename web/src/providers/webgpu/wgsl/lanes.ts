// Element types in WGSL, one or several lanes wide, and the conversion between storage and arithmetic.
import type { Binding, StorageType, Tensor } from '../../../contract/kernel';

export type Lanes = 1 | 2 | 4;
export type ComputeType = 'f32' | 'i32' | 'u32';

/** E.g. ("f32", 4) -> "vec4<f32>". */
export function laneType(scalar: StorageType | 'bool', lanes: Lanes): string {
  return lanes === 1 ? scalar : `vec${lanes}<${scalar}>`;
}

/** The type in which elements are computed: f16 is only for storage. */
export function computeType(storage: StorageType): ComputeType {
  return storage === 'f16' ? 'f32' : storage;
}

/** WGSL of `element` (read from a binding) as its compute type. */
export function load(storage: StorageType, lanes: Lanes, element: string): string {
  return storage === 'f16' ? `${laneType('f32', lanes)}(${element})` : element;
}

/** WGSL of `value` (of the compute type) in its stored form. */
export function stored(storage: StorageType, lanes: Lanes, value: string): string {
  return storage === 'f16' ? `${laneType('f16', lanes)}(${value})` : value;
}

/**
 * F, I, U and B: float, integer, unsigned and boolean values of `lanes` lanes. Functions written with these names fit
 * any width.
 */
export function laneAliases(lanes: Lanes): string {
  const names = { F: 'f32', I: 'i32', U: 'u32', B: 'bool' } as const;
  return Object.entries(names)
    .map(([name, type]) => `alias ${name} = ${laneType(type, lanes)};`)
    .join(' ');
}

/**
 * The tensor bound `lanes` elements at a time, its size rounded up. Buffers are multiples of 16 bytes, so the lanes
 * past the end exist; their contents are undefined.
 */
export function inLanes(tensor: Tensor, lanes: Lanes): Binding {
  if (lanes === 1) return tensor;
  if (tensor.size % lanes === 0) return { tensor, vec: lanes };
  const size = Math.ceil(tensor.size / lanes) * lanes;
  return { tensor: { ...tensor, size, dims: [size] }, vec: lanes };
}
