// CRC-32 of bytes that arrive in pieces, in any order, as when several requests fetch parts of a file.
const POLYNOMIAL = 0xedb88320;

/** Multiplies by x, for a polynomial whose highest bit is that of x^0. */
const timesX = (value: number) => (value & 1 ? POLYNOMIAL ^ (value >>> 1) : value >>> 1);

/** Each byte's contribution to the sum, if 0 to 7 more bytes follow it. */
const TABLES = new Int32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = timesX(value);
  TABLES[byte] = value;
}
for (let i = 256; i < TABLES.length; i++) TABLES[i] = TABLES[TABLES[i - 256] & 0xff] ^ (TABLES[i - 256] >>> 8);

/** Continues a sum with these bytes, complemented neither before nor after. */
export type GoOn = (sum: number, bytes: Uint8Array) => number;

function plain(sum: number, bytes: Uint8Array): number {
  let [value, at] = [sum, 0];
  if (bytes.byteOffset % 4 === 0) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, (bytes.byteLength >> 3) * 2);
    for (let i = 0; i < words.length; i += 2) {
      const [low, high] = [words[i] ^ value, words[i + 1]];
      value =
        TABLES[1792 | (low & 0xff)] ^
        TABLES[1536 | ((low >>> 8) & 0xff)] ^
        TABLES[1280 | ((low >>> 16) & 0xff)] ^
        TABLES[1024 | (low >>> 24)] ^
        TABLES[768 | (high & 0xff)] ^
        TABLES[512 | ((high >>> 8) & 0xff)] ^
        TABLES[256 | ((high >>> 16) & 0xff)] ^
        TABLES[high >>> 24];
    }
    at = words.byteLength;
  }
  for (; at < bytes.byteLength; at++) value = TABLES[(value ^ bytes[at]) & 0xff] ^ (value >>> 8);
  return value;
}

/** The product of two polynomials. */
function times(a: number, b: number): number {
  let [product, factor] = [0, b];
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= factor;
    factor = timesX(factor);
  }
  return product;
}

/** The sum after this number of zero bytes. */
function followed(sum: number, zeros: number): number {
  let [value, power] = [sum, 1 << 23]; // x^8: one byte
  for (let left = zeros; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) value = times(value, power);
    power = times(power, power);
  }
  return value;
}

export function crc32(bytes: Uint8Array): number {
  return ~plain(~0, bytes) >>> 0;
}

/** The sum of `size` bytes, each of which is added once. */
export class Checksum {
  private sum = 0;
  private missing: number;

  /** @param goOn a faster function, if there is one: the core's. */
  constructor(
    private readonly size: number,
    private readonly goOn: GoOn = plain,
  ) {
    this.missing = size;
  }

  /** Returns the sum with the last piece. @param offset of the piece. */
  add(offset: number, piece: Uint8Array): number | undefined {
    this.sum ^= followed(this.goOn(offset === 0 ? ~0 : 0, piece), this.size - offset - piece.byteLength);
    this.missing -= piece.byteLength;
    return this.missing === 0 ? ~this.sum >>> 0 : undefined;
  }
}
