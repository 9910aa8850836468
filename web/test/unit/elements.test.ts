import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DType } from '../../src/schema';
import { ElementForms, toNumbers } from '../../src/jsep/elements';
import { fromHalves, toHalves } from '../../src/jsep/float16';

const elements = new ElementForms({ f16: true });
const withoutF16 = new ElementForms({ f16: false });

const view = (array: { buffer: ArrayBufferLike }) => new Uint8Array(array.buffer as ArrayBuffer);

const CASES: [keyof typeof DType, Uint8Array, Uint8Array][] = [
  ['int64', view(BigInt64Array.of(-1n, 5n, -(2n ** 31n))), view(Int32Array.of(-1, 5, -(2 ** 31)))],
  ['uint64', view(BigUint64Array.of(0n, 2n ** 32n - 1n)), view(Uint32Array.of(0, 2 ** 32 - 1))],
  ['int8', view(Int8Array.of(-128, 127)), view(Int32Array.of(-128, 127))],
  ['uint8', view(Uint8Array.of(0, 255)), view(Uint32Array.of(0, 255))],
  ['int16', view(Int16Array.of(-32768, 7)), view(Int32Array.of(-32768, 7))],
  ['uint16', view(Uint16Array.of(65535)), view(Uint32Array.of(65535))],
  ['bool_', Uint8Array.of(1, 0, 1), view(Uint32Array.of(1, 0, 1))],
];
for (const [name, cpu, gpu] of CASES) {
  test(`elements: ${name} is widened and narrowed again`, () => {
    assert.deepEqual(elements.widen(DType[name], cpu), gpu);
    assert.deepEqual(elements.narrow(DType[name], gpu), cpu);
  });
}

test('elements: what lies the same on both sides is not copied', () => {
  const bytes = view(Float32Array.of(1, 2));
  for (const dtype of [DType.float32, DType.int32, DType.uint32, DType.float16]) {
    assert.equal(elements.widen(dtype, bytes), bytes);
    assert.equal(elements.narrow(dtype, bytes), bytes);
  }
});

test('elements: float16 is an f32 where the device has no f16', () => {
  const cpu = view(Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00, 0x8000));
  const gpu = view(Float32Array.of(1, -2, 2 ** -24, Infinity, -0));
  assert.deepEqual([elements.storage(DType.float16), elements.size(DType.float16)], ['f16', 2]);
  assert.deepEqual([withoutF16.storage(DType.float16), withoutF16.size(DType.float16)], ['f32', 4]);
  assert.deepEqual(withoutF16.widen(DType.float16, cpu), gpu);
  assert.deepEqual(withoutF16.narrow(DType.float16, gpu), cpu);
  const shifted = new Uint8Array(cpu.byteLength + 1);
  shifted.set(cpu, 1);
  assert.deepEqual(withoutF16.widen(DType.float16, shifted.subarray(1)), gpu);
});

test('float16: every number is the same again; a NaN stays one', () => {
  const halves = Uint16Array.from({ length: 65536 }, (_, i) => i);
  const values = fromHalves(halves);
  assert.deepEqual([values[0x3555], values[0x03ff], values[0x7bff]], [0.333251953125, 1023 * 2 ** -24, 65504]);
  toHalves(values).forEach((half, i) => {
    const isNaN = (i & 0x7fff) > 0x7c00;
    assert.equal(Number.isNaN(values[i]), isNaN);
    assert.ok(isNaN ? (half & 0x7fff) > 0x7c00 : half === i, `0x${i.toString(16)} became 0x${half.toString(16)}`);
  });
});

test('float16: numbers between two go to the nearer, from the middle to the even one, beyond the largest to infinity', () => {
  const halves = Uint16Array.from({ length: 0x7c00 }, (_, i) => i);
  const values = fromHalves(halves);
  for (let i = 0; i + 1 < halves.length; i++) {
    const [middle, even] = [(values[i] + values[i + 1]) / 2, i + (i & 1)];
    const step = middle * 2 ** -23;
    assert.deepEqual([...toHalves(Float32Array.of(middle - step, middle, middle + step))], [i, even, i + 1], `${middle}`);
  }
  assert.deepEqual([...toHalves(Float32Array.of(65519, 65520, 1e38, -65520))], [0x7bff, 0x7c00, 0x7c00, 0xfc00]);
  assert.deepEqual([...toHalves(Float32Array.of(2 ** -25, -(2 ** -26), 1e-45))], [0, 0x8000, 0]);
});

test('elements: integers beyond 32 bits are refused, not truncated', () => {
  assert.throws(() => elements.widen(DType.int64, view(BigInt64Array.of(2n ** 31n))), /does not fit/);
  assert.throws(() => elements.widen(DType.uint64, view(BigUint64Array.of(2n ** 32n))), /does not fit/);
  assert.throws(() => elements.widen(DType.float64, view(Float64Array.of(1))), /no form on the GPU/);
});

test('elements: numbers of any alignment, large integers clamped', () => {
  const shifted = new Uint8Array(17);
  shifted.set(view(BigInt64Array.of(-3n, 2n ** 63n - 1n)), 1);
  assert.deepEqual(toNumbers(DType.int64, shifted.subarray(1)), [-3, Number.MAX_SAFE_INTEGER]);
});
