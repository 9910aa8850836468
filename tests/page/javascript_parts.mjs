// What the cases of pages are made of.
import { InferenceSession, Tensor } from './py_ort.mjs';

export const create = (name, options) => InferenceSession.create(`${name}.pyort`, options);
export const x = new Tensor('float32', [1, 2, 3], [1, 3]);
export const scale = new Tensor('float32', [10, 20, 30]);

/** A buffer with these elements, or with room for so many bytes. */
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

/** What goes to the console until `stop`. */
export function listening(method) {
  const said = [];
  const real = console[method];
  console[method] = (text) => said.push(text);
  said.stop = () => {
    console[method] = real;
  };
  return said;
}

function crc32(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  }
  return ~sum >>> 0;
}

/**
 * A .pyort file with another header and right sums.
 *
 * @param change given the header, and a function that takes a further content and tells its offset.
 */
export function forged(bytes, change) {
  const start = 16 + new DataView(bytes.buffer).getUint32(8, true);
  let header = JSON.parse(new TextDecoder().decode(bytes.subarray(16, start)));
  const data = [bytes.subarray(start)];
  const add = (content) => {
    const offset = header.size;
    header.checksums.push([offset, crc32(content)]);
    data.push(content, new Uint8Array(-content.length & 63));
    header.size += content.length + (-content.length & 63);
    return offset;
  };
  header = change(header, add) ?? header;
  let text = JSON.stringify(header);
  text += ' '.repeat(-(16 + new TextEncoder().encode(text).length) & 63);
  const told = new TextEncoder().encode(text);
  const prefix = new DataView(bytes.slice(0, 16).buffer);
  prefix.setUint32(8, told.length, true);
  prefix.setUint32(12, crc32(told), true);
  return new Blob([prefix, told, ...data]);
}

/** Something else somewhere in plain data, other ones with other seeds. */
export function mutated(data, seed) {
  let state = seed * 2654435761;
  const draw = (count) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
  const places = [];
  const walk = (within) => {
    for (const key of Object.keys(within)) {
      places.push([within, key]);
      if (typeof within[key] === 'object' && within[key]) walk(within[key]);
    }
  };
  walk({ data });
  const [within, key] = places[1 + draw(places.length - 1)];
  const old = within[key];
  const others = [null, true, -1, 0, 0.5, 7, 2 ** 53, 1e300, 'x', '', [], {}, [[]], [1, 2, 3], old + 64, -old, [old]];
  const drawn = draw(others.length + 1);
  if (drawn < others.length) within[key] = others[drawn];
  else delete within[key];
}
