// Tensors as onnxruntime-web has them, on the CPU or in a GPU buffer.
//
// Whose the memory is: what a session left on the GPU is its tensor's, until `dispose` or `getData(true)`. A buffer
// given to fromGpuBuffer stays the caller's; dispose then only calls what the caller gave for that. No tensor is freed
// by a run that it is fed to.
import { elementCount } from '../contract/elements';
import type { TensorKeeper } from './keeper';
import { dtypeOfType, fromBytes, invalid, type TensorData, type TensorType, toData } from './elements';

export type TensorLocation = 'cpu' | 'gpu-buffer' | 'none';

export interface GpuBufferOptions {
  readonly dataType?: TensorType;
  readonly dims: readonly number[];
  /** Gives the elements; getData needs it. */
  readonly download?: () => Promise<TensorData>;
  /** Called by dispose. */
  readonly dispose?: () => void;
}

/** A tensor that a session left on the GPU. */
export interface Kept {
  readonly keeper: TensorKeeper;
  readonly gpuId: number;
}

export class Tensor {
  private place: TensorLocation = 'cpu';
  private elements: TensorData | undefined;
  private buffer: GPUBuffer | undefined;
  private kept: Kept | undefined;
  private download?: () => Promise<TensorData>;
  private onDispose?: () => void;

  /** @param dims by default that of a vector. */
  constructor(
    readonly type: TensorType,
    data: TensorData | readonly (number | bigint | boolean | string)[],
    readonly dims: readonly number[] = [data.length],
  ) {
    dtypeOfType(type);
    checkDims(dims);
    this.elements = toData(type, data);
    if (this.elements.length !== this.size)
      throw invalid(`a tensor of shape [${dims}] has ${this.size} elements, not ${this.elements.length}`);
  }

  /**
   * A tensor in a buffer of the caller's, of the device that the session is on (Runtime.registerDevice).
   * It needs the usages STORAGE, COPY_SRC and COPY_DST and a size that is a multiple of 16. On the GPU int64, int16 and
   * int8 are i32; uint64, uint16, uint8 and bool are u32; float16 is f32 where the device has no shader-f16.
   */
  static fromGpuBuffer(buffer: GPUBuffer, { dataType = 'float32', dims, download, dispose }: GpuBufferOptions): Tensor {
    if (dataType === 'string') throw invalid('strings cannot be on the GPU');
    const tensor = Tensor.onGpu(dataType, dims, buffer);
    tensor.download = download;
    tensor.onDispose = dispose;
    return tensor;
  }

  /** What a session left on the GPU. */
  static kept(type: TensorType, dims: readonly number[], keeper: TensorKeeper, gpuId: number): Tensor {
    const tensor = Tensor.onGpu(type, dims, keeper.buffer?.(gpuId));
    tensor.kept = { keeper, gpuId };
    tensor.download = async () => fromBytes(type, await keeper.download(gpuId, dtypeOfType(type), dims));
    tensor.onDispose = () => keeper.free(gpuId);
    return tensor;
  }

  private static onGpu(type: TensorType, dims: readonly number[], buffer?: GPUBuffer): Tensor {
    checkDims(dims);
    const tensor = Object.create(Tensor.prototype, {
      type: { value: type, enumerable: true },
      dims: { value: [...dims], enumerable: true },
    }) as Tensor;
    tensor.place = 'gpu-buffer';
    tensor.buffer = buffer;
    return tensor;
  }

  get size(): number {
    return elementCount(this.dims);
  }

  /** Where the elements are; "none" after dispose. */
  get location(): TensorLocation {
    return this.place;
  }

  /** The elements, of a tensor on the CPU. */
  get data(): TensorData {
    if (this.place === 'cpu') return this.elements!;
    throw invalid(this.place === 'none' ? DISPOSED : 'this tensor is on the GPU: await getData()');
  }

  get gpuBuffer(): GPUBuffer {
    if (this.place === 'gpu-buffer') {
      if (this.buffer) return this.buffer;
      throw invalid(
        "this tensor is on a worker's GPU device: with env.wasm.proxy = false sessions run in the page, and share its",
      );
    }
    throw invalid(this.place === 'none' ? DISPOSED : 'this tensor is on the CPU');
  }

  /** Who holds it, and the number it has there; undefined for a buffer of the caller's. */
  get keptBy(): Kept | undefined {
    return this.kept;
  }

  /**
   * The elements, brought to the CPU if they are not there.
   * @param release whether to free the GPU buffer; the tensor is then on the CPU.
   */
  async getData(release = false): Promise<TensorData> {
    if (this.place !== 'gpu-buffer') return this.data;
    if (!this.download) throw invalid('getData of a buffer of your own needs the option `download` of fromGpuBuffer');
    const data = await this.download();
    // Somebody may have disposed of it meanwhile.
    if (!release || this.location !== 'gpu-buffer') return data;
    this.dispose();
    this.place = 'cpu';
    this.elements = data;
    return data;
  }

  /** Frees what it holds; it is of no use afterwards. */
  dispose(): void {
    if (this.place === 'gpu-buffer') this.onDispose?.();
    this.place = 'none';
    this.elements = this.buffer = this.kept = this.onDispose = this.download = undefined;
  }
}

const DISPOSED = 'this tensor was disposed of';

function checkDims(dims: readonly number[]): void {
  const bad = dims.find((dim) => !Number.isInteger(dim) || dim < 0);
  if (bad !== undefined) throw invalid(`a shape is made of whole numbers: [${dims}]`);
}
