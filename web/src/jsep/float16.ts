// float16 as bits, for devices without f16 and for reading host inputs; not every browser has Float16Array.

/** The float32 values of float16 bits. */
export function fromHalves(halves: Uint16Array): Float32Array<ArrayBuffer> {
  const values = new Float32Array(halves.length);
  const words = new Uint32Array(values.buffer);
  for (let i = 0; i < halves.length; i++) {
    const magnitude = halves[i] & 0x7fff;
    // In float32's place the exponent's bias is still 15: times 2^112 it is 127, and subnormals come out right by themselves.
    words[i] = magnitude << 13;
    values[i] *= 2 ** 112;
    if (magnitude >= 0x7c00) words[i] |= 0x7f800000;
    words[i] |= (halves[i] & 0x8000) << 16;
  }
  return values;
}

/** The nearest float16 (of two as near, the even one) of each float32: beyond 65504 infinity, of a NaN a NaN. */
export function toHalves(values: Float32Array): Uint16Array<ArrayBuffer> {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++) {
    const magnitude = words[i] & 0x7fffffff;
    const sign = (words[i] >>> 16) & 0x8000;
    if (magnitude > 0x7f800000) halves[i] = sign | 0x7e00;
    else if (magnitude >= 0x477ff000) halves[i] = sign | 0x7c00;
    else if (magnitude < 0x38800000) halves[i] = sign | nearestEven(Math.abs(values[i]) * 2 ** 24);
    else halves[i] = sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
  }
  return halves;
}

function nearestEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
