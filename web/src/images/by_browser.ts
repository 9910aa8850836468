// JPEG, WebP and whatever else the browser has a decoder of.
import { checkedSize, damaged, type Picture, unknown } from './picture';

/** What every browser has. */
const EVERYWHERE = ['JPEG', 'WebP'];

/** Pixels as they are stored: no color space, no turning by what a camera noted. */
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

/** Without what would have the browser turn or recolor it; browsers that go on without an end are told of it. */
function bare(format: string, bytes: Uint8Array): Uint8Array {
  if (format === 'JPEG') return bareJpeg(bytes);
  return format === 'WebP' ? bareWebp(bytes) : bytes;
}

const COMMENT = 0xfe;

/** Exif and color profiles become comments. */
function bareJpeg(bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  for (let at = 2; at + 4 <= out.length && out[at] === 0xff && out[at + 1] !== 0xda; ) {
    if (out[at + 1] === 0xff) {
      at++; // a fill byte
      continue;
    }
    if (out[at + 1] === 0xe1 || out[at + 1] === 0xe2) out[at + 1] = COMMENT;
    at += 2 + out[at + 2] * 256 + out[at + 3];
  }
  let end = out.length - 2;
  while (end > 0 && !(out[end] === 0xff && out[end + 1] === 0xd9)) end--;
  if (end <= 0) throw damaged('JPEG', 'it ends too early');
  return out;
}

/** Chunks, and their flags in the file's header. Lossless pictures have alpha among their colors. */
const LEFT_OUT: Readonly<Record<string, number>> = { ICCP: 0x20, ALPH: 0x10, EXIF: 0x08 };

/** Such chunks get a name that nobody knows. */
function bareWebp(bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  const view = new DataView(out.buffer);
  if (out.length < 20 || view.getUint32(4, true) + 8 > out.length) throw damaged('WebP', 'it ends too early');
  const flags = 20; // where the file is an extended one
  for (let at = 12; at + 8 <= out.length; ) {
    const name = String.fromCharCode(...out.subarray(at, at + 4));
    if (name in LEFT_OUT) {
      out.fill(0x78, at, at + 4);
      out[flags] &= ~LEFT_OUT[name];
    }
    const size = view.getUint32(at + 4, true);
    at += 8 + size + (size % 2);
  }
  return out;
}
