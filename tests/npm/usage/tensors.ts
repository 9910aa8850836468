import { Tensor, type TypedTensor } from 'py-ort-web';

const image = (await Tensor.fromImage(new ImageData(2, 2), { tensorFormat: 'RGB' })) as TypedTensor<'float32'>;
const data: Float32Array = image.data;
const same: TypedTensor<'float32'> = image.reshape([1, 3, 4]) as TypedTensor<'float32'>;
const url: string = image.toDataURL();

declare const device: GPUDevice;
const buffer = device.createBuffer({ size: 64, usage: 128 | 4 | 8 });
const onGpu = Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [4, 4] });
const back: Float32Array = (await onGpu.getData(true)) as Float32Array;
const place: Tensor.DataLocation = onGpu.location;
const given: GPUBuffer = onGpu.gpuBuffer as GPUBuffer;
const shape: readonly number[] = same.dims;

declare const mlTensor: Tensor.MLTensorType;
const inGraphs = Tensor.fromMLTensor(mlTensor, { dataType: 'int64', dims: [4], dispose: () => mlTensor.destroy() });
const sameTensor: Tensor.MLTensorType = inGraphs.mlTensor;
const elements: BigInt64Array = (await inGraphs.getData(true)) as BigInt64Array;
onGpu.dispose();
export { back, data, elements, given, place, sameTensor, shape, url };
