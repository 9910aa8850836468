// float16 and bfloat16 as bits, for reading host inputs; not every browser has Float16Array.

/** The float32 values of float16 bits. */
export function fromHalves(halves: Uint16Array): Float32Array<ArrayBuffer> {
  const values = new Float32Array(halves.length);
  const words = new Uint32Array(values.buffer);
  for (let i = 0; i < halves.length; i++) {
    const magnitude = halves[i] & 0x7fff;
    // In float32's place the exponent's bias is still 15: times 2^112 it is 127, which is correct for subnormals too.
    words[i] = magnitude << 13;
    values[i] *= 2 ** 112;
    if (magnitude >= 0x7c00) words[i] |= 0x7f800000;
    words[i] |= (halves[i] & 0x8000) << 16;
  }
  return values;
}

/** The float32 values of bfloat16 bits: their first halves. */
export function fromBfloats(halves: Uint16Array): Float32Array<ArrayBuffer> {
  return new Float32Array(Uint32Array.from(halves, (bits) => bits << 16).buffer);
}
