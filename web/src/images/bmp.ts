// BMP: palettes, bit fields, run lengths. Alpha is ignored.
import { checkedSize, damaged, type Picture, Reader, unknown } from './picture';

const BMP = 'BMP';
const RUNS_8 = 1;
const RUNS_4 = 2;
const FIELDS = 3;
const FIELDS_WITH_ALPHA = 6;

interface Header {
  readonly width: number;
  readonly height: number;
  /** True if the first row is the top one; usually it is the last. */
  readonly down: boolean;
  readonly bits: number;
  readonly compression: number;
  /** For red, green and blue, in pixels of 16 and 32 bits. */
  readonly masks: readonly number[];
  readonly palette: Uint8Array;
  /** Bytes of a color in the palette. */
  readonly entry: number;
}

function header(reader: Reader): Header {
  const start = reader.at;
  const size = reader.u32();
  const old = size === 12;
  if (!old && size < 40) throw damaged(BMP, `its header has ${size} bytes`);
  const [width, signed] = old ? [reader.u16(), reader.u16()] : [reader.i32(), reader.i32()];
  const [down, height] = [signed < 0, Math.abs(signed)];
  checkedSize(BMP, width, height);
  reader.u16(); // planes
  const bits = reader.u16();
  const compression = old ? 0 : reader.u32();
  if (!old) reader.take(12);
  const used = old ? 0 : reader.u32();
  if (!old) reader.take(4);
  if (![1, 2, 4, 8, 16, 24, 32].includes(bits)) throw damaged(BMP, `its pixels have ${bits} bits`);
  const runs = compression === RUNS_8 || compression === RUNS_4;
  const fields = compression === FIELDS || compression === FIELDS_WITH_ALPHA;
  if (compression > FIELDS_WITH_ALPHA || (compression && !runs && !fields))
    throw unknown(BMP, ` of compression ${compression}`);
  if (runs && (bits !== (compression === RUNS_8 ? 8 : 4) || down)) throw damaged(BMP, `runs of ${bits} bits`);
  if (fields && bits !== 16 && bits !== 32) throw damaged(BMP, `fields of ${bits} bits`);
  const masks = fields
    ? [reader.u32(), reader.u32(), reader.u32()]
    : bits === 16
      ? [0x7c00, 0x3e0, 0x1f]
      : [0xff0000, 0xff00, 0xff];
  // Without a newer header the masks follow the header.
  reader.at = Math.max(fields ? reader.at : 0, start + size);
  const entry = old ? 3 : 4;
  const colors = bits <= 8 ? used || 1 << bits : 0;
  if (colors > 256) throw damaged(BMP, `its palette has ${colors} colors`);
  return { width, height, down, bits, compression, masks, palette: reader.take(colors * entry), entry };
}

/** Indices of colors, row by row from the first, from run lengths. */
function unroll(reader: Reader, { width, height, bits }: Header): Uint8Array {
  const indices = new Uint8Array(width * height);
  let [x, y] = [0, 0];
  const put = (value: number) => {
    if (x < width && y < height) indices[y * width + x++] = value;
  };
  const nibble = (byte: number, i: number) => (bits === 8 ? byte : i % 2 ? byte & 15 : byte >> 4);
  // The marks after the last pixel may be missing.
  const full = () => y === height - 1 && x >= width && reader.at === reader.bytes.length;
  while (y < height && !full()) {
    const [count, value] = [reader.u8(), reader.u8()];
    if (count) for (let i = 0; i < count; i++) put(nibble(value, i));
    else if (value === 0) [x, y] = [0, y + 1];
    else if (value === 1) break;
    else if (value === 2) [x, y] = [x + reader.u8(), y + reader.u8()];
    else {
      const size = Math.ceil((value * bits) / 8);
      const plain = reader.take(size);
      for (let i = 0; i < value; i++) put(nibble(plain[bits === 8 ? i : i >> 1], i));
      reader.at += size % 2;
    }
  }
  return indices;
}

/** A field of a pixel, scaled to 8 bits. */
function field(pixel: number, mask: number): number {
  if (!mask) return 0;
  const shift = 31 - Math.clz32(mask & -mask);
  const most = mask >>> shift;
  return Math.floor((((pixel & mask) >>> shift) * 255) / most);
}

export function decodeBmp(bytes: Uint8Array): Picture {
  const reader = new Reader(BMP, bytes, true);
  reader.at = 10;
  const start = reader.u32();
  const head = header(reader);
  const { width, height, down, bits, masks, palette, entry } = head;
  reader.at = start;
  const pixels = new Uint8Array(width * height * 3);
  const color = (to: number, index: number) => {
    if ((index + 1) * entry > palette.length) throw damaged(BMP, `it has no color ${index}`);
    for (let c = 0; c < 3; c++) pixels[to + c] = palette[index * entry + 2 - c];
  };
  const runs = head.compression === RUNS_8 || head.compression === RUNS_4 ? unroll(reader, head) : undefined;
  for (let r = 0; r < height; r++) {
    const at = (down ? r : height - 1 - r) * width;
    const row = runs ? runs.subarray(r * width) : reader.take(Math.ceil((width * bits) / 32) * 4);
    for (let x = 0; x < width; x++) {
      const to = (at + x) * 3;
      if (runs) color(to, row[x]);
      else if (bits <= 8) color(to, (row[(x * bits) >> 3] >> (8 - bits - ((x * bits) & 7))) & ((1 << bits) - 1));
      else if (bits === 24) for (let c = 0; c < 3; c++) pixels[to + c] = row[x * 3 + 2 - c];
      else {
        const [low, high] = [row[(x * bits) >> 3], row[((x * bits) >> 3) + 1]];
        const pixel =
          bits === 16 ? low | (high << 8) : low | (high << 8) | (row[x * 4 + 2] << 16) | (row[x * 4 + 3] << 24);
        for (let c = 0; c < 3; c++) pixels[to + c] = field(pixel, masks[c]);
      }
    }
  }
  return { width, height, channels: 3, pixels };
}
