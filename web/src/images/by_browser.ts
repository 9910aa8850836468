// JPEG, WebP and other formats for which the browser has a decoder.
import { checkedSize, damaged, type Picture, unknown } from './picture';

/** Formats in every browser. */
const EVERYWHERE = ['JPEG', 'WebP'];

/** Pixels as stored: without color spaces, and without a camera's rotation. */
export async function decodeByBrowser(format: string, type: string, bytes: Uint8Array): Promise<Picture> {
  if (typeof createImageBitmap !== 'function' || typeof OffscreenCanvas !== 'function')
    throw unknown(format, ', of which there are decoders in browsers only,');
  const file = new Blob([bare(format, bytes) as BlobPart], { type });
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
  } catch (error) {
    if (EVERYWHERE.includes(format)) throw damaged(format, (error as Error).message);
    throw unknown(format, ', of which this browser has no decoder (or these bytes are damaged),');
  }
  const { width, height } = bitmap;
  try {
    checkedSize(format, width, height);
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })!;
    context.globalCompositeOperation = 'copy';
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    return { width, height, channels: 4, pixels: new Uint8Array(data.buffer) };
  } finally {
    bitmap.close();
  }
}

/**
 * Without the parts by which the browser would rotate or recolor it. Throws for files that browsers read past their
 * end.
 */
function bare(format: string, bytes: Uint8Array): Uint8Array {
  if (format === 'JPEG') return bareJpeg(bytes);
  if (format === 'WebP') return bareWebp(bytes);
  // If the size is 0, browsers use that of the first frame.
  if (format === 'GIF') checkedSize(format, little(bytes, 6, 2) || 1, little(bytes, 8, 2) || 1);
  return bytes;
}

/** A number of `size` bytes, the lowest first. */
function little(bytes: Uint8Array, at: number, size: number): number {
  return bytes.subarray(at, at + size).reduceRight((value, byte) => value * 256 + byte, 0);
}

const COMMENT = 0xfe;
const SCAN = 0xda;
/** Segments with the picture's size: SOF0 to SOF15, except three other markers. */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/**
 * Refuses a size for which the browser would allocate memory and fill it with gray: 32 x 32 pixels have at least one
 * bit.
 */
function checkedFrame(bytes: Uint8Array, at: number): void {
  const [height, width] = [bytes[at + 5] * 256 + bytes[at + 6], bytes[at + 7] * 256 + bytes[at + 8]];
  checkedSize('JPEG', width, height);
  if (width * height > bytes.length * 8 * 32 * 32) throw damaged('JPEG', 'it ends too early');
}

/** Exif and color profiles become comments. */
function bareJpeg(bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  let at = 2;
  while (at + 10 <= out.length && out[at] === 0xff && out[at + 1] !== SCAN) {
    if (out[at + 1] === 0xff) {
      at++; // a fill byte
      continue;
    }
    if (isFrame(out[at + 1])) checkedFrame(out, at);
    if (out[at + 1] === 0xe1 || out[at + 1] === 0xe2) out[at + 1] = COMMENT;
    at += 2 + out[at + 2] * 256 + out[at + 3];
  }
  // Thumbnails in Exif have end markers, too.
  let end = out.length - 2;
  while (end > at && !(out[end] === 0xff && out[end + 1] === 0xd9)) end--;
  if (end <= at) throw damaged('JPEG', 'it ends too early');
  return out;
}

/** Chunks to drop, and their flags in the file's header. In lossless pictures alpha is among the colors. */
const LEFT_OUT: Readonly<Record<string, number>> = { ICCP: 0x20, ALPH: 0x10, EXIF: 0x08 };

/** Such chunks get an unknown name. */
function bareWebp(bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  const view = new DataView(out.buffer);
  if (out.length < 20 || view.getUint32(4, true) + 8 > out.length) throw damaged('WebP', 'it ends too early');
  const flags = 20; // in an extended file
  for (let at = 12; at + 8 <= out.length; ) {
    const name = String.fromCharCode(...out.subarray(at, at + 4));
    if (name in LEFT_OUT) {
      out.fill(0x78, at, at + 4);
      out[flags] &= ~LEFT_OUT[name];
    }
    // Minus one, after the flags.
    if (name === 'VP8X') checkedSize('WebP', little(out, at + 12, 3) + 1, little(out, at + 15, 3) + 1);
    const size = view.getUint32(at + 4, true);
    at += 8 + size + (size % 2);
  }
  return out;
}
