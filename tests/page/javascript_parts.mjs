// Parts of the pages' cases.
import { InferenceSession, Tensor } from './py_ort.mjs';

/** The first available one, as most cases need it. */
export const executionProviders = ['webgpu', 'wasm'];
export const create = (name, options) =>
  InferenceSession.create(`${name}.pyort`, options === null ? null : { executionProviders, ...options });
export const x = new Tensor('float32', [1, 2, 3], [1, 3]);
export const scale = new Tensor('float32', [10, 20, 30]);

/** A buffer with these elements, or with room for this number of bytes. */
export function bufferOn(
  device,
  given,
  usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
) {
  const bytes = typeof given === 'number' ? new Uint8Array(given) : new Uint8Array(given.buffer);
  const size = Math.ceil(bytes.length / 4) * 4;
  const buffer = device.createBuffer({ size, usage, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(bytes);
  buffer.unmap();
  return buffer;
}

export async function contents(device, buffer, array, count) {
  const size = Math.ceil((count * array.BYTES_PER_ELEMENT) / 4) * 4;
  const read = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, read, 0, size);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(GPUMapMode.READ);
  return new array(read.getMappedRange().slice(0), 0, count);
}

/** Collects the console's messages until `stop`. */
export function listening(method) {
  const said = [];
  const real = console[method];
  console[method] = (text) => said.push(text);
  said.stop = () => {
    console[method] = real;
  };
  return said;
}
