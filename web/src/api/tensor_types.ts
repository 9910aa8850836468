// onnxruntime-web's declarations of tensors, by its names: element types, places of a tensor, ways to make one.
/** A global class of the host, or the fallback where its types are not installed (@webgpu/types, a newer lib.dom). */
type Global<Name extends string, Fallback> = typeof globalThis extends { [name in Name]: { prototype: infer T } }
  ? T
  : Fallback;

export type GpuBuffer = Global<'GPUBuffer', { readonly size: number; readonly mapState: string }>;
/** A Float16Array, if the host's types include it. */
type Float16 = Global<'Float16Array', never>;
/** A source of a video's frames. */
export type VideoFrameSource =
  | Global<'VideoFrame', { readonly displayWidth: number; readonly displayHeight: number }>
  | HTMLVideoElement;
export type MLTensorHandle = Global<'MLTensor', { destroy(): void }>;
export type MLContextHandle = Global<'MLContext', object>;

/**
 * The array of a tensor's elements, by type. int4 and uint4 are packed as in ONNX, two per byte, the first in the low
 * bits. The types from bfloat16 on have no array in JavaScript: they are bits, packed if smaller than a byte.
 */
export interface DataTypeMap {
  float32: Float32Array;
  uint8: Uint8Array;
  int8: Int8Array;
  uint16: Uint16Array;
  int16: Int16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  string: string[];
  /** 0 or 1. */
  bool: Uint8Array;
  /** A Float16Array if the browser has one, otherwise a Uint16Array of bits, which is accepted everywhere. */
  float16: Uint16Array | Float16;
  float64: Float64Array;
  uint32: Uint32Array;
  uint64: BigUint64Array;
  uint4: Uint8Array;
  int4: Int8Array;
  bfloat16: Uint16Array;
  float8e4m3fn: Uint8Array;
  float8e4m3fnuz: Uint8Array;
  float8e5m2: Uint8Array;
  float8e5m2fnuz: Uint8Array;
  float8e8m0: Uint8Array;
  float4e2m1: Uint8Array;
  uint2: Uint8Array;
  int2: Int8Array;
}

export type TensorType = keyof DataTypeMap;
export type TensorData = DataTypeMap[TensorType];

export interface ElementTypeMap extends Record<Exclude<TensorType, 'int64' | 'uint64' | 'string' | 'bool'>, number> {
  int64: bigint;
  uint64: bigint;
  string: string;
  bool: boolean;
}

/** "none" after dispose; "cpu" also after getData has downloaded the elements. */
export type TensorLocation = 'none' | 'cpu' | 'cpu-pinned' | 'texture' | 'gpu-buffer' | 'ml-tensor';

/** The types that have a form on the GPU (see fromGpuBuffer). */
export type GpuBufferDataTypes =
  | 'float32'
  | 'float16'
  | 'bfloat16'
  | 'int64'
  | 'int32'
  | 'int16'
  | 'int8'
  | 'uint64'
  | 'uint32'
  | 'uint16'
  | 'uint8'
  | 'bool';

interface Shaped<T> {
  readonly type: T;
  readonly dims: readonly number[];
}

/** For memory other than the CPU's. */
interface ResourceOptions<T extends TensorType> {
  /** Returns the elements; getData needs it. */
  download?(): Promise<DataTypeMap[T]>;
  /** Called once by dispose, or by getData(true). */
  dispose?(): void;
}

type NumericType = Exclude<TensorType, 'string'>;
export type MLTensorDataTypes =
  | 'float32'
  | 'float16'
  | 'int8'
  | 'uint8'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'bool'
  | 'uint4'
  | 'int4';

export interface CpuPinnedConstructorParameters<T extends NumericType = NumericType> extends Shaped<T> {
  readonly location: 'cpu-pinned';
  readonly data: DataTypeMap[T];
}

export interface TextureConstructorParameters<T extends 'float32' = 'float32'> extends Shaped<T>, ResourceOptions<T> {
  readonly location: 'texture';
  readonly texture: WebGLTexture;
}

export interface GpuBufferConstructorParameters<T extends GpuBufferDataTypes = GpuBufferDataTypes>
  extends Shaped<T>,
    ResourceOptions<T> {
  readonly location: 'gpu-buffer';
  readonly gpuBuffer: GpuBuffer;
}

export interface MLTensorConstructorParameters<T extends MLTensorDataTypes = MLTensorDataTypes>
  extends Shaped<T>,
    ResourceOptions<T> {
  readonly location: 'ml-tensor';
  readonly mlTensor: MLTensorHandle;
}

export interface TensorFromGpuBufferOptions<T extends GpuBufferDataTypes> extends ResourceOptions<T> {
  /** Default: float32. */
  readonly dataType?: T;
  readonly dims: readonly number[];
}

export interface TensorFromMLTensorOptions<T extends MLTensorDataTypes> extends ResourceOptions<T> {
  readonly dataType?: T;
  readonly dims: readonly number[];
}

/** The order of channels. */
export type ImageFormat = 'RGB' | 'RGBA' | 'BGR' | 'RBG';
export type ImageTensorLayout = 'NHWC' | 'NCHW';

/** One number for all channels, or one for each. */
export type PerChannel = number | readonly [number, number, number] | readonly [number, number, number, number];

export interface OptionsFormat {
  /** Channels of the tensor that becomes an image, or of a texture. Default: RGB, for textures RGBA. */
  readonly format?: ImageFormat;
}

export interface OptionsTensorFormat {
  /** Channels of the new tensor. Default: RGB; for an HTMLImageElement RGBA, as in onnxruntime-web. */
  readonly tensorFormat?: ImageFormat;
}

export interface OptionsTensorDataType {
  /** Default: float32. uint8 elements are rounded, and clamped to 0 and 255. */
  readonly dataType?: 'float32' | 'uint8';
}

export interface OptionsTensorLayout {
  /** Default: NCHW. */
  readonly tensorLayout?: ImageTensorLayout;
}

export interface OptionsDimensions {
  /** In pixels. */
  readonly height?: number;
  readonly width?: number;
}

export interface OptionResizedDimensions {
  /** In pixels; the image is scaled. Default: its own height. */
  readonly resizedHeight?: number;
  readonly resizedWidth?: number;
}

export interface OptionsNormalizationParameters {
  /**
   * From images: element = (pixel + bias) / mean. To images: pixel = (element - bias) * mean. Pixels are 0 to 255; the
   * numbers are for red, green, blue and alpha in this order, in any format. Default: bias 0, mean 255; from images to
   * uint8 without `norm` pixels are unchanged.
   */
  readonly norm?: { readonly bias?: PerChannel; readonly mean?: PerChannel };
}

export interface TensorFromImageDataOptions
  extends OptionResizedDimensions,
    OptionsTensorFormat,
    OptionsTensorLayout,
    OptionsTensorDataType,
    OptionsNormalizationParameters {}
export interface TensorFromImageElementOptions extends TensorFromImageDataOptions {}
export interface TensorFromImageBitmapOptions extends TensorFromImageDataOptions {}
/** `height` and `width` are accepted and have no effect, as in onnxruntime-web: an image has its own. */
export interface TensorFromUrlOptions extends TensorFromImageDataOptions, OptionsDimensions {}

export interface TensorFromVideoFrameOptions extends TensorFromImageDataOptions {
  /** The device to make the tensor on. Default: `env.webgpu.device`. */
  readonly device?: Global<'GPUDevice', { readonly importExternalTexture: unknown }>;
}

export interface TensorToImageDataOptions extends OptionsTensorLayout, OptionsFormat, OptionsNormalizationParameters {}
export interface TensorToDataUrlOptions extends TensorToImageDataOptions {}

export interface TensorFromTextureOptions<T extends 'float32'> extends OptionsFormat, ResourceOptions<T> {
  readonly height: number;
  readonly width: number;
}

export interface ConversionUtils {
  /** The tensor as a PNG in a data URL; in pages only, since workers have no canvas that makes one. */
  toDataURL(options?: TensorToDataUrlOptions): string;
  /** The tensor as pixels: its first image, of three or four channels. Without an alpha channel it is opaque. */
  toImageData(options?: TensorToImageDataOptions): ImageData;
}

/** A tensor whose type is known. */
export interface TypedTensor<T extends TensorType> extends ConversionUtils {
  readonly type: T;
  readonly dims: readonly number[];
  /** Number of elements. */
  readonly size: number;
  /** The elements of a tensor on the CPU; throws for others. */
  readonly data: DataTypeMap[T];
  readonly location: TensorLocation;
  readonly texture: WebGLTexture;
  /**
   * The buffer of a tensor on the GPU whose session runs in this thread; throws for others. Its elements have the form
   * described at fromGpuBuffer.
   */
  readonly gpuBuffer: GpuBuffer;
  /** The MLTensor of a tensor in one whose session runs in this thread; throws for others. */
  readonly mlTensor: MLTensorHandle;
  /**
   * The elements. If they are not on the CPU they are downloaded, and the tensor's location is "cpu" from then on.
   *
   * @param releaseData true to free the device's memory; otherwise dispose does.
   */
  getData(releaseData?: boolean): Promise<DataTypeMap[T]>;
  /** Frees the tensor's memory; the tensor is unusable afterwards. */
  dispose(): void;
  /** A tensor of other dims on the same elements; throws if a session keeps them on the GPU. */
  reshape(dims: readonly number[]): TypedTensor<T>;
}

export interface TensorFactory {
  /**
   * A tensor from an image: [1, channels, height, width], or [1, height, width, channels] with tensorLayout NHWC.
   *
   * @param image its pixels, or an object that shows them; a string is a URL.
   */
  fromImage(
    image: ImageData,
    options?: TensorFromImageDataOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  fromImage(
    image: HTMLImageElement,
    options?: TensorFromImageElementOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  fromImage(
    image: ImageBitmap | HTMLCanvasElement | OffscreenCanvas | HTMLVideoElement,
    options?: TensorFromImageBitmapOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  fromImage(
    image: string | URL | Blob,
    options?: TensorFromUrlOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  /**
   * A tensor of a video's frame, in a buffer of the device's: its pixels do not go through the CPU. `dispose` frees it.
   * Without WebGPU, and for uint8, it is that of `fromImage`. The frame stays the caller's, to be closed.
   */
  fromVideoFrame(
    frame: VideoFrameSource,
    options?: TensorFromVideoFrameOptions,
  ): Promise<TypedTensor<'float32'> | TypedTensor<'uint8'>>;
  /**
   * A tensor in a WebGL texture of [1, height, width, 4]. Only its own context can read a texture: a session needs
   * `download`, which returns the elements.
   */
  fromTexture<T extends 'float32' = 'float32'>(
    texture: WebGLTexture,
    options: TensorFromTextureOptions<T>,
  ): TypedTensor<'float32'>;
  /**
   * A tensor in the caller's own buffer, on the device of the session (`env.webgpu.device`). The buffer remains the
   * caller's. It needs the usage STORAGE; bytes after the elements are not read. With COPY_SRC and COPY_DST and a size
   * that is a multiple of 16 it is used in place, otherwise it is copied on the GPU.
   *
   * Elements have the CPU's form. Those of int64 and uint64 have eight bytes, of which nodes on the GPU read the lower
   * four. Those of bool, int8 and uint8 have one byte; those of int16, uint16, float16 and bfloat16 have two, with or
   * without shader-f16. int64, uint64 and bool are converted on the GPU for each run.
   */
  fromGpuBuffer<T extends GpuBufferDataTypes = 'float32'>(
    buffer: GpuBuffer,
    options: TensorFromGpuBufferOptions<T>,
  ): TypedTensor<T>;
  /**
   * A tensor in the caller's own MLTensor, in the context of the session (`executionProviders: [{ name: 'webnn',
   * context }]`). The MLTensor remains the caller's. It has the same shape, and elements of the same type; for bool
   * uint8. A session reads and writes it in place; nodes on the CPU read one that is `readable`, and write one that is
   * `writable`.
   */
  fromMLTensor<T extends MLTensorDataTypes>(
    tensor: MLTensorHandle,
    options: TensorFromMLTensorOptions<T>,
  ): TypedTensor<T>;
  /** A tensor on this array; by default a vector. */
  fromPinnedBuffer<T extends NumericType>(type: T, buffer: DataTypeMap[T], dims?: readonly number[]): TypedTensor<T>;
}

export interface TensorConstructor extends TensorFactory {
  /**
   * @param data an array of the type's own class, which the tensor shares, or plain values.
   * @param dims by default a vector of all elements.
   */
  new (type: 'string', data: readonly string[], dims?: readonly number[]): TypedTensor<'string'>;
  new (type: 'bool', data: Uint8Array | readonly boolean[], dims?: readonly number[]): TypedTensor<'bool'>;
  new (type: 'uint8', data: Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new <T extends 'uint64' | 'int64'>(
    type: T,
    data: DataTypeMap[T] | readonly bigint[] | readonly number[],
    dims?: readonly number[],
  ): TypedTensor<T>;
  new <T extends Exclude<TensorType, 'string' | 'bool' | 'uint64' | 'int64'>>(
    type: T,
    data: DataTypeMap[T] | readonly number[],
    dims?: readonly number[],
  ): TypedTensor<T>;
  /** The type follows from the array. */
  new (data: Float32Array, dims?: readonly number[]): TypedTensor<'float32'>;
  new (data: Int8Array, dims?: readonly number[]): TypedTensor<'int8'>;
  new (data: Uint8Array, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Uint16Array, dims?: readonly number[]): TypedTensor<'uint16'>;
  new (data: Int16Array, dims?: readonly number[]): TypedTensor<'int16'>;
  new (data: Int32Array, dims?: readonly number[]): TypedTensor<'int32'>;
  new (data: BigInt64Array, dims?: readonly number[]): TypedTensor<'int64'>;
  new (data: readonly string[], dims?: readonly number[]): TypedTensor<'string'>;
  new (data: readonly boolean[], dims?: readonly number[]): TypedTensor<'bool'>;
  new (data: Float64Array, dims?: readonly number[]): TypedTensor<'float64'>;
  new (data: Uint32Array, dims?: readonly number[]): TypedTensor<'uint32'>;
  new (data: BigUint64Array, dims?: readonly number[]): TypedTensor<'uint64'>;
  new (data: Float16, dims?: readonly number[]): TypedTensor<'float16'>;
  /** A tensor in existing memory. */
  new <T extends NumericType>(parameters: CpuPinnedConstructorParameters<T>): TypedTensor<T>;
  new (parameters: TextureConstructorParameters): TypedTensor<'float32'>;
  new <T extends GpuBufferDataTypes>(parameters: GpuBufferConstructorParameters<T>): TypedTensor<T>;
  new <T extends MLTensorDataTypes>(parameters: MLTensorConstructorParameters<T>): TypedTensor<T>;
  new (
    type: TensorType,
    data: TensorData | readonly number[] | readonly string[] | readonly bigint[] | readonly boolean[],
    dims?: readonly number[],
  ): TypedTensor<TensorType>;
  new (data: TensorData, dims?: readonly number[]): TypedTensor<TensorType>;
}
