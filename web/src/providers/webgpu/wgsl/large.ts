// Tensors that are larger than one binding of a device (128 MiB on many). Work that can be cut into parts that bind
// windows is fastest in parts; for other work a tensor is bound in several windows at once (windows.ts).
import { storageSize } from '../../../contract/elements';
import type { Context, DeviceTraits, Tensor } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';

/** The alignment of bindings, in bytes. */
const BINDING_ALIGNMENT = 256;

/** Windows of a tensor like this one begin at multiples of this number of elements. */
export function windowStep(tensor: Pick<Tensor, 'storage' | 'packing'>): number {
  return BINDING_ALIGNMENT / storageSize(tensor);
}

/** Elements of a tensor like this one in one binding. */
export function bindable(tensor: Pick<Tensor, 'storage' | 'packing'>, device: DeviceTraits): number {
  return Math.floor(device.maxStorageBindingSize / storageSize(tensor) / windowStep(tensor)) * windowStep(tensor);
}

/** Bytes of a window, among several consecutive ones. */
export function windowBytes(limit: number): number {
  return Math.floor(limit / 256) * 256;
}

/** The number of windows for this number of bytes. */
export function windowCount(bytes: number, limit: number): number {
  return bytes <= limit ? 1 : Math.ceil(bytes / windowBytes(limit));
}

/** Bindings that a dispatch needs for these tensors, one for each window. */
export function bindingCount(tensors: readonly Tensor[], { maxStorageBindingSize }: DeviceTraits): number {
  return tensors.reduce(
    (sum, tensor) => sum + windowCount(tensor.size * storageSize(tensor), maxStorageBindingSize),
    0,
  );
}

export function bindsWhole(tensor: Tensor, device: DeviceTraits): boolean {
  return tensor.size <= bindable(tensor, device);
}

/**
 * Parts [begin, end) of the first `length` of an axis. `rows` of each tensor along it (0: it repeats) begin where a
 * window may begin, and can be bound. Undefined if even the shortest part is too large.
 */
export function partsAlong(
  length: number,
  tensors: readonly { readonly tensor: Tensor; readonly row: number }[],
  device: DeviceTraits,
): [begin: number, end: number][] | undefined {
  const moving = tensors.filter(({ row }) => row > 0);
  if (tensors.some(({ tensor, row }) => row === 0 && !bindsWhole(tensor, device))) return undefined;
  // Steps are powers of two, so the largest fits all.
  const step = Math.max(
    1,
    ...moving.map(({ tensor, row }) => windowStep(tensor) / powerOfTwoIn(row, windowStep(tensor))),
  );
  const most = Math.min(...moving.map(({ tensor, row }) => Math.floor(bindable(tensor, device) / row)));
  const part = Math.floor(most / step) * step;
  if (part === 0) return undefined;
  return Array.from({ length: Math.ceil(length / part) }, (_, k) => [k * part, Math.min(length, (k + 1) * part)]);
}

/**
 * Works on tensors with a part for each item of a batch (axis 0): item by item, or several together, if the tensors are
 * larger than a binding and can be cut in this way.
 */
export function inBatches<T extends { readonly [name: string]: Tensor | undefined }>(
  ctx: Context,
  batch: number,
  tensors: T,
  work: (parts: T) => void,
): void {
  const there = Object.values(tensors).filter((tensor) => tensor !== undefined);
  const whole = there.every((tensor) => bindsWhole(tensor, ctx.device));
  const parts = whole
    ? undefined
    : partsAlong(
        batch,
        there.map((tensor) => ({ tensor, row: tensor.size / batch })),
        ctx.device,
      );
  if (!parts) return work(tensors);
  for (const [begin, end] of parts) {
    const part = (tensor: Tensor) =>
      ctx.window(tensor, begin * (tensor.size / batch), [end - begin, ...tensor.dims.slice(1)]);
    work(Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, tensor && part(tensor)])) as T);
  }
}

/** The largest power of two that divides `row`, up to `most`. */
function powerOfTwoIn(row: number, most: number): number {
  let power = 1;
  while (power < most && row % (power * 2) === 0) power *= 2;
  return power;
}

/** Elements of a row of `dims` along its axis `axis`. */
export function rowSize(dims: readonly number[], axis: number): number {
  return sizeOf(dims.slice(axis + 1));
}
