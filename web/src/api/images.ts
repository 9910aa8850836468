// Images to pixels, and pixels to a PNG, by the browser's own canvas.
import { invalid, messageOf, RuntimeError, shortened } from '../errors';
import { ErrorCode } from '../schema';
import type { OptionResizedDimensions } from './tensor_types';

type Drawable = HTMLImageElement | ImageBitmap | HTMLCanvasElement | OffscreenCanvas | HTMLVideoElement;
export type ImageSource = ImageData | Drawable | Blob | URL | string;

/** The pixels of an image, scaled if a size is given. */
export async function pixelsOf(
  image: ImageSource,
  { resizedWidth, resizedHeight }: OptionResizedDimensions,
): Promise<ImageData> {
  if (is('ImageData', image)) {
    const { width = image.width, height = image.height } = { width: resizedWidth, height: resizedHeight };
    // Drawing would change the hidden colors of transparent pixels.
    if (width === image.width && height === image.height) return image;
    return drawn(await createImageBitmap(image, { premultiplyAlpha: 'none' }), width, height);
  }
  const source = await drawable(image);
  const [width, height] = sizeOf(source);
  if (!width || !height) throw invalid(`an image of ${width} x ${height} pixels has no elements: has it loaded?`);
  return drawn(source, resizedWidth ?? width, resizedHeight ?? height);
}

/** A data URL. */
export function toPng(image: ImageData): string {
  if (typeof document === 'undefined')
    throw new RuntimeError(
      ErrorCode.not_implemented,
      'toDataURL needs a document: in workers toImageData gives the pixels',
    );
  const canvas = document.createElement('canvas');
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d')!.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** True if it is of this class; false if the host lacks the class. */
function is(name: 'ImageData', value: unknown): value is ImageData;
function is(name: 'HTMLImageElement', value: unknown): value is HTMLImageElement;
function is(name: 'HTMLVideoElement', value: unknown): value is HTMLVideoElement;
function is(name: string, value: unknown): boolean;
function is(name: string, value: unknown): boolean {
  const type = (globalThis as { readonly [name: string]: unknown })[name];
  return typeof type === 'function' && value instanceof type;
}

async function drawable(image: Exclude<ImageSource, ImageData>): Promise<Drawable> {
  if (typeof image === 'string' || image instanceof URL) return fromUrl(String(image));
  if (image instanceof Blob) return decoded('a Blob', createImageBitmap(image));
  if (is('HTMLImageElement', image)) {
    await decoded(image.currentSrc || 'an HTMLImageElement', image.decode());
    return image;
  }
  if (['ImageBitmap', 'HTMLCanvasElement', 'OffscreenCanvas', 'HTMLVideoElement'].some((name) => is(name, image)))
    return image;
  throw invalid('fromImage takes ImageData, an <img>, an ImageBitmap, a canvas, a <video>, a Blob or a URL');
}

async function fromUrl(url: string): Promise<Drawable> {
  if (typeof Image !== 'undefined') {
    const image = new Image();
    image.crossOrigin = 'anonymous';
    image.src = url;
    await decoded(url, image.decode());
    return image;
  }
  return decoded(
    url,
    fetch(url)
      .then((response) => response.blob())
      .then((blob) => createImageBitmap(blob)),
  );
}

async function decoded<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const why = `${messageOf(error)} (one of another origin needs CORS)`;
    throw invalid(`${shortened(what)} is no image that this browser can load: ${why}`);
  }
}

function sizeOf(source: Drawable): [number, number] {
  if (is('HTMLImageElement', source)) return [source.naturalWidth, source.naturalHeight];
  if (is('HTMLVideoElement', source)) return [source.videoWidth, source.videoHeight];
  return [source.width, source.height];
}

function drawn(source: Drawable, width: number, height: number): ImageData {
  checkSize(width, height);
  try {
    const context = newContext(width, height);
    context.imageSmoothingQuality = 'high';
    context.drawImage(source, 0, 0, width, height);
    return context.getImageData(0, 0, width, height);
  } catch (error) {
    const isForeign = error instanceof DOMException && error.name === 'SecurityError';
    const why = isForeign ? 'of another origin needs CORS headers' : `of ${width} x ${height} pixels cannot be drawn`;
    throw invalid(`an image ${why}: ${messageOf(error)}`);
  }
}

export function checkSize(width: number, height: number): void {
  if (![width, height].every((size) => Number.isInteger(size) && size > 0))
    throw invalid(`an image is scaled to whole numbers of pixels, not ${width} x ${height}`);
}

function newContext(width: number, height: number): CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D {
  const settings = { willReadFrequently: true };
  if (typeof document === 'undefined') return new OffscreenCanvas(width, height).getContext('2d', settings)!;
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  return canvas.getContext('2d', settings) as CanvasRenderingContext2D;
}
