// PNG, except color spaces and transparency: samples as stored, with 16 bits reduced to the upper 8. Browsers decode
// PNG, too, but multiply colors by alpha, and convert color spaces.
import { crc32 } from '../wire/checksum';
import { inflate } from './inflate';
import { checkedSize, damaged, type Picture, Reader } from './picture';

const PNG = 'PNG';
/** Samples of a pixel by color type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const DEPTHS: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};
const PALETTE = 3;
/** Adam7: the first column and row of each pass, and its steps. */
const PASSES = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
const WHOLE = [[0, 0, 1, 1]] as const;

interface Header {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly color: number;
  readonly interlaced: boolean;
}

function header(reader: Reader): Header {
  const [width, height, depth, color] = [reader.u32(), reader.u32(), reader.u8(), reader.u8()];
  const [compression, filter, interlace] = [reader.u8(), reader.u8(), reader.u8()];
  if (!DEPTHS[color]?.includes(depth) || compression || filter || interlace > 1)
    throw damaged(PNG, `color type ${color} of ${depth} bits, methods ${compression}, ${filter}, ${interlace}`);
  checkedSize(PNG, width, height);
  return { width, height, depth, color, interlaced: interlace === 1 };
}

/** Undoes the filter of a row in place; `above` is the row before it, `step` the bytes of a pixel. */
function unfilter(kind: number, row: Uint8Array, above: Uint8Array, step: number): void {
  if (kind > 4) throw damaged(PNG, `a row has filter ${kind}`);
  for (let i = 0; i < row.length; i++) {
    const a = i < step ? 0 : row[i - step];
    const b = above[i];
    if (kind === 1) row[i] += a;
    else if (kind === 2) row[i] += b;
    else if (kind === 3) row[i] += (a + b) >> 1;
    else if (kind === 4) {
      const c = i < step ? 0 : above[i - step];
      const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
      row[i] += pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    }
  }
}

export async function decodePng(bytes: Uint8Array): Promise<Picture> {
  const reader = new Reader(PNG, bytes, false);
  reader.take(8);
  let head: Header | undefined;
  let palette = new Uint8Array();
  const data: Uint8Array[] = [];
  for (let kind = ''; kind !== 'IEND'; ) {
    const size = reader.u32();
    const checked = reader.take(4 + size);
    kind = String.fromCharCode(...checked.subarray(0, 4));
    if (reader.u32() !== crc32(checked)) throw damaged(PNG, `the sum of its chunk ${kind} is wrong`);
    const chunk = checked.subarray(4);
    if (kind === 'IHDR') head = header(new Reader(PNG, chunk, false));
    else if (kind === 'PLTE') palette = new Uint8Array(chunk);
    else if (kind === 'IDAT') data.push(chunk);
  }
  if (!head) throw damaged(PNG, 'it has no header');
  return pixelsOf(head, palette, data);
}

async function pixelsOf(head: Header, palette: Uint8Array, data: readonly Uint8Array[]): Promise<Picture> {
  const { width, height, depth, color, interlaced } = head;
  const samples = SAMPLES[color];
  const passes = (interlaced ? PASSES : WHOLE)
    .map(([left, top, right, down]) => {
      const [columns, rows] = [Math.ceil((width - left) / right), Math.ceil((height - top) / down)];
      return { left, top, right, down, columns, rows, stride: Math.ceil((columns * samples * depth) / 8) };
    })
    .filter(({ columns, rows }) => columns > 0 && rows > 0);
  const stored = await inflate(
    PNG,
    data,
    passes.reduce((sum, { rows, stride }) => sum + rows * (1 + stride), 0),
  );
  const channels = color === PALETTE ? 3 : samples;
  const pixels = new Uint8Array(width * height * channels);
  // Fewer bits than 8 are scaled to the whole range; the upper of two bytes comes first.
  const [mask, scale, wide] = [(1 << depth) - 1, color === PALETTE ? 1 : 255 / ((1 << depth) - 1), depth >> 3];
  let at = 0;
  for (const { left, top, right, down, columns, rows, stride } of passes) {
    let above: Uint8Array = new Uint8Array(stride);
    for (let r = 0; r < rows; r++) {
      const row = stored.subarray(at + 1, at + 1 + stride);
      if (stored[at]) unfilter(stored[at], row, above, Math.max(1, (samples * depth) >> 3));
      above = row;
      at += 1 + stride;
      for (let i = 0, to = ((top + r * down) * width + left) * channels; i < columns; i++, to += right * channels) {
        if (color === PALETTE) {
          const bit = i * depth;
          const index = 3 * ((row[bit >> 3] >> (8 - depth - (bit & 7))) & mask);
          if (index + 3 > palette.length) throw damaged(PNG, `it has no color ${index / 3}`);
          for (let c = 0; c < 3; c++) pixels[to + c] = palette[index + c];
        } else if (wide) {
          for (let c = 0; c < channels; c++) pixels[to + c] = row[(i * channels + c) * wide];
        } else {
          const bit = i * depth;
          pixels[to] = ((row[bit >> 3] >> (8 - depth - (bit & 7))) & mask) * scale;
        }
      }
    }
  }
  return { width, height, channels, pixels };
}
