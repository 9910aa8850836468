// ONNX's ImageDecoder: the bytes of a picture's file to pixels, [height, width, channels].
import { invalid } from '../errors';
import { decodeBmp } from './bmp';
import { decodeByBrowser } from './by_browser';
import { damaged, type Picture } from './picture';
import { decodePng } from './png';
import { decodePnm } from './pnm';

type Decoder = (bytes: Uint8Array) => Picture | Promise<Picture>;

const browsers =
  (format: string, type: string): Decoder =>
  (bytes) =>
    decodeByBrowser(format, type, bytes);

/** By the files' first bytes, in hexadecimal. */
const FORMATS: readonly (readonly [RegExp, Decoder])[] = [
  [/^89504e470d0a1a0a/, decodePng],
  [/^ffd8ff/, browsers('JPEG', 'image/jpeg')],
  [/^424d/, decodeBmp],
  [/^503[1-6](09|0a|0d|20)/, decodePnm],
  [/^52494646.{8}57454250/, browsers('WebP', 'image/webp')],
  [/^(0000000c6a502020|ff4fff51)/, browsers('JPEG 2000', 'image/jp2')],
  [/^(49492[ab]00|4d4d002[ab])/, browsers('TIFF', 'image/tiff')],
  [/^47494638/, browsers('GIF', 'image/gif')],
  [/^.{8}6674797061766966/, browsers('AVIF', 'image/avif')],
];

const CHANNELS: Readonly<Record<string, number>> = { RGB: 3, BGR: 3, Grayscale: 1 };

/** `format`: "RGB", "BGR" or "Grayscale". */
export async function decodeImage(bytes: Uint8Array, format: string): Promise<Picture> {
  const channels = CHANNELS[format];
  if (!channels) throw invalid(`pixel_format '${format}' is none of RGB, BGR and Grayscale`);
  const start = Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const decoder = FORMATS.find(([pattern]) => pattern.test(start))?.[1];
  if (!decoder)
    throw damaged('PNG, JPEG, BMP, PNM, WebP, TIFF or JPEG 2000', start ? `it begins with ${start}` : 'it is empty');
  return inFormat(await decoder(bytes), format, channels);
}

/** Alpha is ignored. Gray follows BT.601, in 16-bit numbers. */
function inFormat(picture: Picture, format: string, channels: number): Picture {
  const { width, height, channels: given, pixels: from } = picture;
  if (given === channels && format !== 'BGR') return picture;
  const pixels = new Uint8Array(width * height * channels);
  const colors = given >= 3;
  for (let i = 0, at = 0, to = 0; i < width * height; i++, at += given, to += channels) {
    const r = from[at];
    const [g, b] = colors ? [from[at + 1], from[at + 2]] : [r, r];
    if (channels === 1) pixels[to] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
    else {
      pixels[to] = format === 'BGR' ? b : r;
      pixels[to + 1] = g;
      pixels[to + 2] = format === 'BGR' ? r : b;
    }
  }
  return { width, height, channels, pixels };
}
