// Code written for onnxruntime-web's declarations, with ours: checked by tsc, never run.
import { Tensor, type TypedTensor } from '../../src';

export const base: Tensor = new Tensor('float32', new Float32Array(3), [3]);
export const typed: TypedTensor<'float32'> = new Tensor('float32', new Float32Array(3), [3]);
export const floats: Float32Array = typed.data;
export const guessed: TypedTensor<'int64'> = new Tensor(new BigInt64Array(1));
export const ids: BigInt64Array = new Tensor('int64', [1, 2]).data;
export const words: string[] = new Tensor(['a']).data;
export const flags: Uint8Array = new Tensor('bool', [true]).data;
export const bits: TypedTensor<'float16'> = new Tensor('float16', new Uint16Array(1));
export const type: Tensor.Type = 'uint4';
export const place: Tensor.DataLocation = 'cpu-pinned';
export const map: Tensor.DataTypeMap['uint64'] = new BigUint64Array(1);
export const either: Tensor = new Tensor(type, map as Tensor.DataType, [1]);
export const reshaped: TypedTensor<'float32'> = typed.reshape([1, 3]);

export async function usages(image: ImageData, buffer: GPUBuffer, canvas: HTMLCanvasElement): Promise<Tensor[]> {
  const onGpu: TypedTensor<'int32'> = Tensor.fromGpuBuffer(buffer, {
    dataType: 'int32',
    dims: [1],
    download: async () => new Int32Array(1),
    dispose: () => buffer.destroy(),
  });
  const numbers: Int32Array = await onGpu.getData(true);
  const plain: TypedTensor<'float32'> = Tensor.fromGpuBuffer(buffer, { dims: [numbers.length] });
  const pinned: TypedTensor<'uint8'> = Tensor.fromPinnedBuffer('uint8', new Uint8Array(2));
  const same = new Tensor({ location: 'gpu-buffer', type: 'float32', gpuBuffer: plain.gpuBuffer, dims: plain.dims });
  const fromImage = await Tensor.fromImage(image, {
    tensorFormat: 'BGR',
    norm: { bias: [1, 2, 3], mean: 255 },
    resizedWidth: 4,
  });
  const drawn: ImageData = fromImage.toImageData({ format: 'BGR' });
  const url: string = fromImage.toDataURL();
  return [
    onGpu,
    plain,
    pinned,
    same,
    await Tensor.fromImage(canvas),
    await Tensor.fromImage(url),
    new Tensor(drawn.data),
  ];
}

// @ts-expect-error no such type
new Tensor('float31', [1]);
// @ts-expect-error strings cannot be on a GPU
Tensor.fromGpuBuffer({} as GPUBuffer, { dataType: 'string', dims: [1] });
