// Tensors that are larger than a device binds at once (128 MiB on many): work on them is cut into parts that bind windows.
import { storageSize } from '../jsep/elements';
import { type DeviceTraits, type Tensor, WINDOW_STEP } from '../jsep/kernel';
import { sizeOf } from './shape';

/** Elements of a tensor like this one that can be bound at once. */
export function bindable(tensor: Pick<Tensor, 'storage'>, device: DeviceTraits): number {
  return Math.floor(device.maxStorageBindingSize / storageSize(tensor.storage) / WINDOW_STEP) * WINDOW_STEP;
}

export function bindsWhole(tensor: Tensor, device: DeviceTraits): boolean {
  return tensor.size <= bindable(tensor, device);
}

/**
 * Parts [begin, end) of the first `length` of an axis, so that `rows` of each tensor along it (0: it repeats) begin where a window may
 * and can be bound. Undefined where even the shortest part is too large.
 */
export function partsAlong(
  length: number, tensors: readonly { readonly tensor: Tensor; readonly row: number }[], device: DeviceTraits,
): [begin: number, end: number][] | undefined {
  const moving = tensors.filter(({ row }) => row > 0);
  if (tensors.some(({ tensor, row }) => row === 0 && !bindsWhole(tensor, device))) return undefined;
  // Steps are powers of two, so the largest serves all.
  const step = Math.max(1, ...moving.map(({ row }) => WINDOW_STEP / powerOfTwoIn(row)));
  const most = Math.min(...moving.map(({ tensor, row }) => Math.floor(bindable(tensor, device) / row)));
  const part = Math.floor(most / step) * step;
  if (part === 0) return undefined;
  return Array.from({ length: Math.ceil(length / part) }, (_, k) => [k * part, Math.min(length, (k + 1) * part)]);
}

/** The largest power of two that divides `row`, up to WINDOW_STEP. */
function powerOfTwoIn(row: number): number {
  let power = 1;
  while (power < WINDOW_STEP && row % (power * 2) === 0) power *= 2;
  return power;
}

/** Elements of a row of `dims` along its axis `axis`. */
export function rowSize(dims: readonly number[], axis: number): number {
  return sizeOf(dims.slice(axis + 1));
}
