import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ErrorCode } from '../../src/schema';
import { RuntimeError } from '../../src/errors';
import { fromBytes, toBytes, typeOfDtype } from '../../src/api/elements';
import { keptBy, keptTensor, Tensor } from '../../src/api/tensor';
import type { TensorData, TensorType } from '../../src/api/tensor_types';
import { DType } from '../../src/schema';

const halves = (globalThis as { Float16Array?: { from(values: number[]): TensorData } }).Float16Array;
/** For calls that the declarations forbid. */
const Any = Tensor as unknown as new (...given: unknown[]) => Tensor;

function refused(work: () => unknown, words: RegExp, code = ErrorCode.invalid_argument): void {
  assert.throws(work, (error) => error instanceof RuntimeError && error.code === code && words.test(error.message));
}

test('tensor: the type of an array', () => {
  const cases: [TensorData, TensorType][] = [
    [Float32Array.of(1), 'float32'],
    [Float64Array.of(1), 'float64'],
    [BigInt64Array.of(1n), 'int64'],
    [BigUint64Array.of(1n), 'uint64'],
    [Int32Array.of(1), 'int32'],
    [Uint32Array.of(1), 'uint32'],
    [Int16Array.of(1), 'int16'],
    [Uint16Array.of(1), 'uint16'],
    [Int8Array.of(1), 'int8'],
    [Uint8Array.of(1), 'uint8'],
    [['a'], 'string'],
  ];
  if (halves) cases.push([halves.from([1]), 'float16']);
  for (const [data, type] of cases) {
    const tensor = new Tensor(data);
    assert.deepEqual([tensor.type, tensor.dims, tensor.size, tensor.location], [type, [1], 1, 'cpu']);
    assert.equal(tensor.data, data);
  }
  assert.deepEqual(new Tensor([true, false]).data, Uint8Array.of(1, 0));
  assert.equal(new Tensor([true]).type, 'bool');
  const clamped = new Tensor(Uint8ClampedArray.of(300, 7), [2, 1]);
  assert.deepEqual([clamped.type, clamped.data, clamped.dims], ['uint8', Uint8Array.of(255, 7), [2, 1]]);
  refused(() => new Any([]), /empty array.*new Tensor\('float32', data\)/);
  refused(() => new Any([1, 2]), /first element is a number/);
  refused(() => new Any(7), /takes an array, not a number/);
  refused(() => new Any(new DataView(new ArrayBuffer(4))), /a DataView has no tensor type/);
});

test('tensor: plain values', () => {
  assert.deepEqual(new Tensor('int64', [1, -2]).data, BigInt64Array.of(1n, -2n));
  assert.deepEqual(new Tensor('uint64', [1n, 2n ** 64n + 3n]).data, BigUint64Array.of(1n, 3n));
  assert.deepEqual(new Tensor('int8', [300, Number.NaN]).data, Int8Array.of(44, 0));
  assert.deepEqual(new Tensor('bool', [true, false]).data, Uint8Array.of(1, 0));
  assert.deepEqual(new Tensor('uint8', Uint8ClampedArray.of(1)).data, Uint8Array.of(1));
  refused(() => new Tensor('int64', [1.5]), /no elements of int64/);
  refused(() => new Tensor('int32', [{}] as unknown as number[], [2]), /has 2 elements, and the data has 1/);
  refused(() => new Any('string', ['a', 1]), /element 1 of a tensor of string is a number/);
  refused(() => new Any('string', Uint8Array.of(1)), /takes an array of strings, not Uint8Array/);
  refused(() => new Any('float31', [1]), /no tensor type "float31"; there are float32/);
  refused(() => new Any('toString', [1]), /no tensor type/);
});

test('tensor: dims and the length of the data', () => {
  refused(() => new Tensor('float32', [1, 2, 3], [2, 2]), /float32\[2,2\] has 4 elements, and the data has 3/);
  refused(() => new Tensor('float32', [1], [1.5]), /whole numbers: \[1.5\]/);
  refused(() => new Any('float32', [1], 1), /an array of whole numbers, not 1/);
  refused(() => new Any('float32', Int32Array.of(1)), /takes Float32Array, not Int32Array/);
  assert.equal(new Tensor('float32', [7], []).size, 1);
  assert.equal(new Tensor('float32', [], [0, 3]).size, 0);
  const dims = [1, 2];
  const tensor = new Tensor('float32', [1, 2], dims);
  dims[0] = 5;
  assert.deepEqual(tensor.dims, [1, 2]);
  // Pages that move axes by hand assign to it, as with onnxruntime-web's.
  (tensor as { dims: readonly number[] }).dims = [2];
  assert.equal(tensor.size, 2);
});

test('tensor: float16 by bits', () => {
  const bits = Uint16Array.of(0x3c00, 0xc000);
  const tensor = new Tensor('float16', bits);
  assert.deepEqual(toBytes(tensor.data), new Uint8Array(bits.buffer));
  if (halves) assert.deepEqual(new Tensor('float16', [1, -2]).data, halves.from([1, -2]));
  else refused(() => new Tensor('float16', [1]), /takes the bits/);
  assert.equal(fromBytes('float16', new Uint8Array(bits.buffer)).constructor, (halves ?? Uint16Array) as unknown);
});

test('tensor: several elements of a byte', () => {
  const five = new Tensor('int4', Int8Array.of(0x21, 0x43, 0x05), [5]);
  assert.deepEqual([five.size, five.data], [5, Int8Array.of(0x21, 0x43, 0x05)]);
  assert.deepEqual(new Tensor('uint4', Uint8Array.of(0x21, 0x43)).dims, [4]);
  assert.deepEqual(new Any('int4', Uint8Array.of(0xff)).data, Int8Array.of(-1));
  refused(() => new Tensor('int4', Int8Array.of(1, 2, 3, 4), [4]), /4 elements, in 2 bytes, and the data has 4/);
  refused(() => new Tensor('uint4', [1, 2]), /takes the bits of its elements, in a Uint8Array/);
  assert.equal(new Tensor('int2', Int8Array.of(1, 1), [2, 3]).size, 6);
});

test('tensor: types that JavaScript lacks are bits', () => {
  assert.deepEqual(fromBytes('bfloat16', Uint8Array.of(0x80, 0x3f)), Uint16Array.of(0x3f80));
  assert.equal(typeOfDtype(DType.float8e4m3fn), 'float8e4m3fn');
  refused(() => new Tensor('bfloat16', [1]), /takes the bits/);
  refused(() => typeOfDtype(DType.complex64), /complex64.*add a Cast/, ErrorCode.not_implemented);
});

test('tensor: in memory that is there already', async () => {
  const data = Float32Array.of(1, 2);
  const pinned = new Tensor({ location: 'cpu-pinned', type: 'float32', data, dims: [2] });
  assert.equal(pinned.data, data);
  assert.equal(pinned.location, 'cpu-pinned');
  assert.equal(await pinned.getData(true), data);
  assert.deepEqual(Tensor.fromPinnedBuffer('float32', data).dims, [2]);
  refused(() => Tensor.fromPinnedBuffer('float32', data, [3]), /has 3 elements/);
  refused(() => new Any({ location: 'moon', type: 'float32', dims: [1] }), /no location "moon"/);
  for (const location of ['gpu-buffer', 'ml-tensor'])
    refused(
      () => new Any({ location, type: 'int4', gpuBuffer: {}, mlTensor: {}, dims: [1] }),
      /int4 has no form on devices/,
      ErrorCode.not_implemented,
    );
  refused(() => new Any({ location: 'texture', type: 'int8', texture: {}, dims: [1] }), /holds float32, not int8/);
});

test('tensor: textures, with what reads them', async () => {
  const texture = {} as WebGLTexture;
  let disposals = 0;
  const dispose = () => {
    disposals++;
  };
  const download = async () => Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  const tensor = Tensor.fromTexture(texture, { width: 2, height: 1, download, dispose });
  assert.deepEqual([tensor.dims, tensor.location, tensor.type], [[1, 1, 2, 4], 'texture', 'float32']);
  assert.equal(tensor.texture, texture);
  refused(() => tensor.data, /await getData/);
  refused(() => tensor.gpuBuffer, /in no GPU buffer: its location is "texture"/);
  assert.equal((await tensor.getData()).length, 8);
  assert.equal(disposals, 0);
  tensor.dispose();
  tensor.dispose();
  assert.equal(disposals, 1);
  await assert.rejects(Tensor.fromTexture(texture, { width: 1, height: 1 }).getData(), /option `download` of fromTex/);
  const short = Tensor.fromTexture(texture, { width: 1, height: 1, download });
  await assert.rejects(short.getData(), /float32\[1,1,1,4\] has 4 elements, and the data has 8/);
});

test('tensor: in an MLTensor of the caller', async () => {
  const mlTensor = { destroy() {} };
  let disposals = 0;
  const options = {
    dims: [2],
    download: async () => Float32Array.of(1, 2),
    dispose: () => {
      disposals++;
    },
  };
  const tensor = Tensor.fromMLTensor(mlTensor, options);
  assert.deepEqual([tensor.location, tensor.type, tensor.mlTensor === mlTensor], ['ml-tensor', 'float32', true]);
  refused(() => tensor.gpuBuffer, /in no GPU buffer: its location is "ml-tensor"/);
  assert.deepEqual(await tensor.getData(true), Float32Array.of(1, 2));
  assert.deepEqual([tensor.location, disposals], ['cpu', 1]);
  await assert.rejects(Tensor.fromMLTensor(mlTensor, { dims: [2] }).getData(), /option `download` of fromMLTensor/);
});

test('tensor: kept by a session, here or in a worker', async () => {
  const freed: number[] = [];
  const keeper = {
    thread: {},
    location: 'gpu-buffer' as const,
    download: async () => new Uint8Array(Float32Array.of(1, 2).buffer),
    free: (id: number) => void freed.push(id),
  };
  const tensor = keptTensor('float32', [2], keeper, 7);
  assert.deepEqual(keptBy(tensor), { keeper, gpuId: 7 });
  refused(() => tensor.gpuBuffer, /runs in a worker.*env.wasm.proxy = false/, ErrorCode.not_implemented);
  refused(() => tensor.mlTensor, /in no MLTensor: its location is "gpu-buffer"/);
  refused(() => tensor.reshape([1, 2]), /owns memory of a device/);
  assert.deepEqual(await tensor.getData(), Float32Array.of(1, 2));
  assert.deepEqual([tensor.location, keptBy(tensor), freed], ['cpu', undefined, []]);
  tensor.dispose();
  assert.deepEqual([tensor.location, freed], ['none', [7]]);
  refused(() => tensor.data, /disposed of/);
  const buffer = {} as GPUBuffer;
  assert.equal(keptTensor('float32', [2], { ...keeper, resource: () => buffer }, 8).gpuBuffer, buffer);
});

test('tensor: reshape shares the elements', () => {
  const tensor = new Tensor('float32', [1, 2, 3, 4], [4]);
  const square = tensor.reshape([2, 2]);
  assert.deepEqual([square.dims, tensor.dims], [[2, 2], [4]]);
  assert.equal(square.data, tensor.data);
  assert(square instanceof Tensor);
  refused(() => tensor.reshape([3]), /float32\[4\] has 4 elements, and \[3\] 3/);
});
