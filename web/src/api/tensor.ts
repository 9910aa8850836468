// Tensors as in onnxruntime-web, on the CPU, in a GPU buffer or in an MLTensor.
//
// Owners of the memory: an output that a session left on a device belongs to its tensor, until `dispose` or
// `getData(true)`. An object passed to fromGpuBuffer or fromMLTensor remains the caller's; dispose then only calls the
// caller's function. A run frees none of its feeds.
import { ErrorCode } from '../schema';
import { invalid, RuntimeError } from '../errors';
import { elementCount, hasGpuForm } from '../contract/elements';
import type { DeviceLocation, TensorKeeper } from '../device/keeper';
import { blameCallers, fromCaller, thrownIn } from './caller';
import { env } from './env';
import { formOf, imageToTensor, tensorToImage } from './image_tensors';
import { checkSize, type ImageSource, pixelsOf, toPng } from './images';
import { countOf, dtypeOfType, fromBytes, lengthOf, toData, typeOfData } from './elements';
import type * as types from './tensor_types';
import type { TensorConstructor, TensorData, TensorLocation, TensorType, TypedTensor } from './tensor_types';

type Parameters =
  | types.CpuPinnedConstructorParameters
  | types.TextureConstructorParameters
  | types.GpuBufferConstructorParameters
  | types.MLTensorConstructorParameters;

/** A tensor that a session left on a device: its owner, and its number there. */
export interface Kept {
  readonly keeper: TensorKeeper;
  readonly gpuId: number;
}

/** The place of elements that are not on the CPU, and functions that access them. */
interface Resource {
  readonly gpuBuffer?: types.GpuBuffer;
  readonly mlTensor?: types.MLTensorHandle;
  readonly texture?: WebGLTexture;
  readonly kept?: Kept;
  readonly download?: () => Promise<TensorData>;
  readonly dispose?: () => void;
}

class AnyTensor implements TypedTensor<TensorType> {
  readonly type: TensorType;
  readonly dims: readonly number[];
  private place: TensorLocation;
  private elements: TensorData | undefined;
  private resource: Resource = {};

  constructor(first: unknown, second?: unknown, third?: readonly number[]) {
    try {
      if (isParameters(first)) {
        const { location, type, dims } = first;
        this.type = type;
        this.dims = checkedDims(dims);
        this.place = location;
        if (location === 'cpu-pinned') this.elements = this.checked(toData(type, first.data));
        else this.resource = checkedResource(first);
        return;
      }
      const [type, data, dims] =
        typeof first === 'string'
          ? [first as TensorType, second, third]
          : [typeOfData(first), first, second as readonly number[] | undefined];
      const elements = toData(type, data);
      this.type = type;
      this.dims = checkedDims(dims ?? [countOf(type, elements)]);
      this.place = 'cpu';
      this.elements = this.checked(elements);
    } catch (error) {
      throw thrownIn(new.target, error);
    }
  }

  private checked(elements: TensorData): TensorData {
    const { type, dims, size } = this;
    const length = lengthOf(type, size);
    if (elements.length === length) return elements;
    const packed = length === size ? '' : `, in ${length} bytes`;
    throw invalid(`a tensor of ${type}[${dims}] has ${size} elements${packed}, and the data has ${elements.length}`);
  }

  static async fromImage(image: ImageSource, options: types.TensorFromUrlOptions = {}): Promise<AnyTensor> {
    return fromCaller(AnyTensor.fromImage, async () => {
      const { type, data, dims } = imageToTensor(await pixelsOf(image, options), withDefaults(image, options));
      return new AnyTensor(type, data, dims);
    });
  }

  static async fromVideoFrame(frame: types.VideoFrameSource, options: types.TensorFromVideoFrameOptions = {}) {
    return fromCaller(AnyTensor.fromVideoFrame, async () => {
      const { fromVideoFrame } = await import('./video_frames');
      return fromVideoFrame({ Tensor, checkSize, invalid }, formOf(options), env.webgpu, frame, options);
    });
  }

  static fromTexture(texture: WebGLTexture, options: types.TensorFromTextureOptions<'float32'>): AnyTensor {
    const { width, height, download, dispose } = options;
    return new AnyTensor({
      location: 'texture',
      type: 'float32',
      dims: [1, height, width, 4],
      texture,
      download,
      dispose,
    });
  }

  static fromGpuBuffer(
    gpuBuffer: types.GpuBuffer,
    options: types.TensorFromGpuBufferOptions<types.GpuBufferDataTypes>,
  ): AnyTensor {
    const { dataType: type = 'float32', dims, download, dispose } = options;
    return new AnyTensor({ location: 'gpu-buffer', type, dims, gpuBuffer, download, dispose });
  }

  static fromMLTensor(
    mlTensor: types.MLTensorHandle,
    options: types.TensorFromMLTensorOptions<types.MLTensorDataTypes>,
  ): AnyTensor {
    const { dataType: type = 'float32', dims, download, dispose } = options;
    return new AnyTensor({ location: 'ml-tensor', type, dims, mlTensor, download, dispose });
  }

  static fromPinnedBuffer(type: Exclude<TensorType, 'string'>, data: TensorData, dims?: readonly number[]): AnyTensor {
    const elements = toData(type, data);
    return new AnyTensor({ location: 'cpu-pinned', type, data: elements, dims: dims ?? [countOf(type, elements)] });
  }

  /** A tensor that a session left on a device. */
  static kept(type: TensorType, dims: readonly number[], keeper: TensorKeeper, gpuId: number): AnyTensor {
    const dtype = dtypeOfType(type);
    const tensor = Object.create(AnyTensor.prototype) as AnyTensor;
    return Object.assign(tensor, {
      type,
      dims: [...dims],
      place: keeper.location,
      resource: {
        kept: { keeper, gpuId },
        download: async () => fromBytes(type, await keeper.download(gpuId, dtype, dims)),
        dispose: () => keeper.free(gpuId),
      },
    });
  }

  get size(): number {
    return elementCount(this.dims);
  }

  get location(): TensorLocation {
    return this.place;
  }

  get data(): TensorData {
    this.ensureValid();
    if (this.elements) return this.elements;
    throw invalid(`this tensor is on a device, in a ${this.place}: await getData()`);
  }

  get gpuBuffer(): types.GpuBuffer {
    return this.onDevice('gpu-buffer', this.resource.gpuBuffer, 'GPU buffer') as types.GpuBuffer;
  }

  get mlTensor(): types.MLTensorHandle {
    return this.onDevice('ml-tensor', this.resource.mlTensor, 'MLTensor') as types.MLTensorHandle;
  }

  private onDevice(location: DeviceLocation, own: object | undefined, what: string): object {
    this.ensureValid();
    if (own) return own;
    const { kept } = this.resource;
    if (kept?.keeper.location !== location) throw this.isNotIn(what);
    if (kept.keeper.resource) return kept.keeper.resource(kept.gpuId, dtypeOfType(this.type), this.dims);
    throw new RuntimeError(
      ErrorCode.not_implemented,
      `the session of this tensor runs in a worker, whose ${what}s the page cannot have: await getData(), ` +
        'feed it to the session, or set env.wasm.proxy = false before the session is created',
    );
  }

  get texture(): WebGLTexture {
    this.ensureValid();
    if (this.resource.texture) return this.resource.texture;
    throw this.isNotIn('WebGL texture');
  }

  /** Undefined on the CPU, and for the caller's own buffer. */
  get kept(): Kept | undefined {
    return isOnDevice(this) ? this.resource.kept : undefined;
  }

  async getData(releaseData = false): Promise<TensorData> {
    return fromCaller(AnyTensor.prototype.getData, () => this.fetched(releaseData));
  }

  private async fetched(releaseData: boolean): Promise<TensorData> {
    this.ensureValid();
    if (!this.elements) {
      const { download } = this.resource;
      if (!download) {
        const makers = { texture: 'fromTexture', 'gpu-buffer': 'fromGpuBuffer', 'ml-tensor': 'fromMLTensor' } as const;
        const made = makers[this.place as keyof typeof makers];
        throw invalid(`getData of a ${this.place} of your own needs the option \`download\` of ${made}`);
      }
      const data = this.checked(toData(this.type, await download()));
      // It may have been disposed of meanwhile.
      if (this.location === 'none') return data;
      this.elements = data;
      this.place = 'cpu';
    }
    const { elements } = this;
    if (releaseData) this.release();
    return elements;
  }

  dispose(): void {
    this.release();
    this.place = 'none';
    this.elements = undefined;
  }

  private release(): void {
    const { dispose } = this.resource;
    this.resource = {};
    dispose?.();
  }

  reshape(dims: readonly number[]): AnyTensor {
    this.ensureValid();
    const wanted = checkedDims(dims);
    if (elementCount(wanted) !== this.size)
      throw invalid(`${this.type}[${this.dims}] has ${this.size} elements, and [${dims}] ${elementCount(wanted)}`);
    if (!this.elements && this.resource.dispose)
      throw invalid('reshape of a tensor that owns memory of a device: await getData() first');
    const tensor = Object.create(AnyTensor.prototype) as AnyTensor;
    return Object.assign(tensor, {
      type: this.type,
      dims: wanted,
      place: this.place,
      elements: this.elements,
      resource: this.elements ? {} : this.resource,
    });
  }

  toImageData(options?: types.TensorToImageDataOptions): ImageData {
    return tensorToImage(this, options);
  }

  toDataURL(options?: types.TensorToDataUrlOptions): string {
    return toPng(tensorToImage(this, options));
  }

  private ensureValid(): void {
    if (this.place === 'none') throw invalid('this tensor was disposed of');
  }

  private isNotIn(what: string): RuntimeError {
    return invalid(`this tensor is in no ${what}: its location is "${this.place}"`);
  }
}

blameCallers(AnyTensor, ['fromTexture', 'fromGpuBuffer', 'fromMLTensor', 'fromPinnedBuffer']);
blameCallers(AnyTensor.prototype, [
  ...['data', 'gpuBuffer', 'mlTensor', 'texture'],
  ...['reshape', 'toImageData', 'toDataURL'],
]);

export const Tensor = AnyTensor as unknown as TensorConstructor;
export type Tensor = TypedTensor<TensorType>;

/** The types of tensors, by onnxruntime-web's names. */
export declare namespace Tensor {
  type Type = TensorType;
  type DataTypeMap = types.DataTypeMap;
  type ElementTypeMap = types.ElementTypeMap;
  type DataType = TensorData;
  type ElementType = types.ElementTypeMap[TensorType];
  type DataLocation = TensorLocation;
  type CpuPinnedDataTypes = Exclude<TensorType, 'string'>;
  type TextureType = WebGLTexture;
  type TextureDataTypes = 'float32';
  type GpuBufferType = types.GpuBuffer;
  type GpuBufferDataTypes = types.GpuBufferDataTypes;
  type MLTensorType = types.MLTensorHandle;
  type MLTensorDataTypes = types.MLTensorDataTypes;
}

/** A tensor that a session left on a device. */
export function keptTensor(type: TensorType, dims: readonly number[], keeper: TensorKeeper, gpuId: number): Tensor {
  return AnyTensor.kept(type, dims, keeper, gpuId);
}

/** The owner of a tensor on a device; undefined for one on the CPU, and for the caller's own memory. */
export function keptBy(tensor: Tensor): Kept | undefined {
  return (tensor as AnyTensor).kept;
}

export function isOnDevice({ location }: Pick<Tensor, 'location'>): boolean {
  return location === 'gpu-buffer' || location === 'ml-tensor';
}

/** The browser's object of a tensor on a device. */
export function resourceOf(tensor: Tensor): object {
  return tensor.location === 'ml-tensor' ? tensor.mlTensor : tensor.gpuBuffer;
}

/** True if a run reads or writes its elements by `data`. */
export function isOnCpu({ location }: Tensor): boolean {
  return location === 'cpu' || location === 'cpu-pinned';
}

function isParameters(first: unknown): first is Parameters {
  return typeof first === 'object' && first !== null && 'location' in first;
}

function checkedResource(parameters: Exclude<Parameters, { readonly location: 'cpu-pinned' }>): Resource {
  const { location, type } = parameters;
  const dtype = dtypeOfType(type);
  switch (location) {
    case 'gpu-buffer':
    case 'ml-tensor':
      if (!hasGpuForm(dtype))
        throw new RuntimeError(ErrorCode.not_implemented, `${type} has no form on devices: keep the tensor on the CPU`);
      return parameters;
    case 'texture':
      if (type !== 'float32') throw invalid(`a texture holds float32, not ${type}`);
      return parameters;
    default:
      throw invalid(`there is no location "${String(location)}" to make a tensor in`);
  }
}

function checkedDims(dims: unknown): readonly number[] {
  if (!Array.isArray(dims)) throw invalid(`a shape is an array of whole numbers, not ${String(dims)}`);
  if (dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) return [...dims];
  throw invalid(`a shape is made of whole numbers: [${dims}]`);
}

/** An HTMLImageElement yields four channels, as in onnxruntime-web. */
function withDefaults(image: ImageSource, options: types.TensorFromUrlOptions): types.TensorFromUrlOptions {
  if (typeof HTMLImageElement === 'undefined' || !(image instanceof HTMLImageElement)) return options;
  return { tensorFormat: 'RGBA', ...options };
}
