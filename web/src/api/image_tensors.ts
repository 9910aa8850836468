// Pixels to elements of a tensor, and back: the order and the normalization of channels.
import { fromHalves } from '../contract/float16';
import { invalid } from '../errors';
import type {
  ImageFormat,
  ImageTensorLayout,
  OptionsNormalizationParameters,
  PerChannel,
  TensorFromImageDataOptions,
  TensorToImageDataOptions,
  TensorType,
  TypedTensor,
} from './tensor_types';

interface Pixels {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue and alpha of each pixel. */
  readonly data: Uint8ClampedArray;
}

interface ImageTensor {
  readonly type: 'float32' | 'uint8';
  readonly data: Float32Array | Uint8Array;
  readonly dims: readonly number[];
}

const FORMATS: readonly ImageFormat[] = ['RGB', 'RGBA', 'BGR', 'RBG'];
const LAYOUTS: readonly ImageTensorLayout[] = ['NCHW', 'NHWC'];
const TYPES = ['float32', 'uint8'] as const;
const NO_NORM = { bias: 0, mean: 1 };

/** The elements that an image becomes. */
export function formOf({ tensorFormat, tensorLayout, dataType, norm }: TensorFromImageDataOptions) {
  const format = oneOf('tensorFormat', FORMATS, tensorFormat);
  const planar = oneOf('tensorLayout', LAYOUTS, tensorLayout) === 'NCHW';
  const type = oneOf('dataType', TYPES, dataType);
  return { planar, type, channels: channelsOf(format, norm ?? (type === 'uint8' ? NO_NORM : {})) };
}

export function imageToTensor(
  { width, height, data: pixels }: Pixels,
  options: TensorFromImageDataOptions,
): ImageTensor {
  const { planar, type, channels } = formOf(options);
  const count = width * height;
  const length = count * channels.length;
  // A clamped array rounds.
  const data = type === 'float32' ? new Float32Array(length) : new Uint8ClampedArray(length);
  channels.forEach(({ color, bias, mean }, channel) => {
    const [start, step] = planar ? [channel * count, 1] : [channel, channels.length];
    for (let i = 0; i < count; i++) data[start + i * step] = (pixels[4 * i + color] + bias) / mean;
  });
  const dims = planar ? [1, channels.length, height, width] : [1, height, width, channels.length];
  return { type, data: data instanceof Float32Array ? data : new Uint8Array(data.buffer), dims };
}

export function tensorToImage(
  tensor: Pick<TypedTensor<TensorType>, 'type' | 'dims' | 'data'>,
  { format: named, tensorLayout, norm }: TensorToImageDataOptions = {},
): ImageData {
  const { type, dims } = tensor;
  const format = oneOf('format', FORMATS, named);
  const layout = oneOf('tensorLayout', LAYOUTS, tensorLayout);
  const channels = channelsOf(format, norm ?? (type === 'uint8' ? NO_NORM : {}));
  const [height, width] = layout === 'NCHW' ? [dims[2], dims[3]] : [dims[1], dims[2]];
  if (dims.length !== 4 || dims[layout === 'NCHW' ? 1 : 3] !== channels.length || !width || !height || !dims[0]) {
    const wanted = layout === 'NCHW' ? `[N, ${channels.length}, H, W]` : `[N, H, W, ${channels.length}]`;
    throw invalid(`an image of format ${format} and layout ${layout} is a tensor ${wanted}, not [${dims}]`);
  }
  const elements = numbersOf(tensor);
  const image = newImage(width, height);
  const pixels = image.data.fill(255);
  const count = width * height;
  channels.forEach(({ color, bias, mean }, channel) => {
    const [start, step] = layout === 'NCHW' ? [channel * count, 1] : [channel, channels.length];
    for (let i = 0; i < count; i++) pixels[4 * i + color] = (Number(elements[start + i * step]) - bias) * mean;
  });
  return image;
}

/** The index in a pixel of each channel, and its normalization. */
function channelsOf(format: ImageFormat, { bias = 0, mean = 255 }: NonNullable<Norm>) {
  return Array.from(format, (name) => {
    const color = 'RGBA'.indexOf(name);
    return { color, bias: ofColor('bias', bias, color, 0), mean: ofColor('mean', mean, color, 255) };
  });
}

type Norm = OptionsNormalizationParameters['norm'];

function ofColor(what: string, numbers: PerChannel, color: number, ofAlpha: number): number {
  if (typeof numbers === 'number') return numbers;
  const ofColors: readonly number[] = numbers;
  if (ofColors.length === 3 || ofColors.length === 4) return ofColors[color] ?? ofAlpha;
  throw invalid(`norm.${what} is a number, or an array of 3 or 4: it has ${ofColors.length}`);
}

function numbersOf({ type, data }: Pick<TypedTensor<TensorType>, 'type' | 'data'>): ArrayLike<number | bigint> {
  if (type === 'float16' && data instanceof Uint16Array) return fromHalves(data);
  if (/^(string|bfloat|float[48]|u?int[24]$)/.test(type)) throw invalid(`no image is made of a tensor of ${type}`);
  return data as ArrayLike<number | bigint>;
}

function newImage(width: number, height: number): ImageData {
  if (typeof ImageData === 'undefined') throw invalid('there is no ImageData here: images are made in browsers');
  return new ImageData(width, height);
}

/** The first one if none is named. */
function oneOf<T extends string>(what: string, values: readonly T[], value: T | undefined): T {
  if (value === undefined) return values[0];
  if (values.includes(value)) return value;
  throw invalid(`${what} is one of ${values.join(', ')}, not "${String(value)}"`);
}
