// The facts on which the commands of a kernel's call depend: types, shapes and places of its inputs, and the values
// that it read on the CPU.
import { type DType, Location } from '../schema';
import type { Core } from '../core/core';
import type { CoreTensor } from '../core/words';
import { toNumbers } from '../contract/elements';
import type { RunEvent } from '../device/recording';

/** An input without its contents; `data`: the id of one on the GPU, otherwise 0. */
export type InputSignature = Pick<CoreTensor, 'dtype' | 'location' | 'data' | 'dims'>;

/** A whole call, except host contents. */
export function signature(inputs: readonly CoreTensor[], wants: readonly boolean[]): Uint32Array {
  const words = inputs.flatMap(({ dtype, location, data, dims }) => [
    dtype,
    location,
    location === Location.device ? data : 0,
    dims.length,
    ...dims,
  ]);
  return Uint32Array.from([inputs.length, ...words, ...wants.map(Number)]);
}

/** Input `index` of those from which `signature` was made. */
export function inputOf(words: Uint32Array, index: number): InputSignature | undefined {
  if (index >= words[0]) return undefined;
  let at = 1;
  for (let i = 0; i < index; i++) at += 4 + words[at + 3];
  const [dtype, location, data, rank] = words.subarray(at, at + 4);
  return {
    dtype: dtype as DType,
    location: location as Location,
    data,
    dims: [...words.subarray(at + 4, at + 4 + rank)],
  };
}

/** True if both have one type, shape and place, whatever their ids. */
export function sameTensor(a: InputSignature, b: InputSignature): boolean {
  return (
    a.dtype === b.dtype &&
    a.location === b.location &&
    a.dims.length === b.dims.length &&
    a.dims.every((dim, i) => dim === b.dims[i])
  );
}

/** True if the kernel would read the same from input `index`: the same contents, or the same answers to its tests. */
export function answeredAlike({ host, tests }: RunEvent, index: number, tensor: CoreTensor, core: Core): boolean {
  const { dtype, location, data, bytes } = tensor;
  const seen = host.get(index);
  const asked = tests.filter((one) => one.index === index);
  if (!seen && asked.length === 0) return true;
  if (location !== Location.cpu) return false;
  if (seen?.some((byte, i) => core.heap[data + i] !== byte)) return false;
  if (asked.length === 0) return true;
  const elements = toNumbers(dtype, core.bytes(data, bytes));
  for (const one of asked) one.seen = elements;
  return asked.every(({ test, answer }) => test(elements) === answer);
}
