import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DType } from '../../src/schema';
import { ElementForms, toNumbers } from '../../src/contract/elements';
import { fromHalves } from '../../src/contract/float16';

const elements = new ElementForms({ f16: true });
const withoutF16 = new ElementForms({ f16: false });

const view = (array: { buffer: ArrayBufferLike }) => new Uint8Array(array.buffer as ArrayBuffer);

const CASES: [keyof typeof DType, Uint8Array, Uint8Array][] = [
  ['int64', view(BigInt64Array.of(-1n, 5n, -(2n ** 31n))), view(Int32Array.of(-1, 5, -(2 ** 31)))],
  ['uint64', view(BigUint64Array.of(0n, 2n ** 32n - 1n)), view(Uint32Array.of(0, 2 ** 32 - 1))],
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
  for (const dtype of [
    DType.float32,
    DType.int32,
    DType.uint32,
    DType.float16,
    DType.int16,
    DType.uint16,
    DType.int8,
    DType.uint8,
  ]) {
    for (const forms of [elements, withoutF16]) {
      assert.equal(forms.widen(dtype, bytes), bytes);
      assert.equal(forms.narrow(dtype, bytes), bytes);
    }
  }
});

test('elements: narrow ones lie as they are; shaders see 32 bits, of float16 only where there is no f16', () => {
  const told = (forms: ElementForms, dtype: DType) => [forms.storage(dtype), forms.packing(dtype), forms.size(dtype)];
  assert.deepEqual(told(elements, DType.float16), ['f16', undefined, 2]);
  assert.deepEqual(told(withoutF16, DType.float16), ['f32', 'f16', 2]);
  assert.deepEqual(told(elements, DType.int8), ['i32', 'i8', 1]);
  assert.deepEqual(told(elements, DType.uint8), ['u32', 'u8', 1]);
  assert.deepEqual(told(elements, DType.int16), ['i32', 'i16', 2]);
  assert.deepEqual(told(elements, DType.uint16), ['u32', 'u16', 2]);
  assert.deepEqual(told(elements, DType.bool_), ['u32', undefined, 4]);
});

test('float16: host inputs of any alignment', () => {
  const halves = Uint16Array.from({ length: 65536 }, (_, i) => i);
  const values = fromHalves(halves);
  assert.deepEqual(
    [values[0x3555], values[0x03ff], values[0x7bff], values[0xfc00]],
    [0.333251953125, 1023 * 2 ** -24, 65504, -Infinity],
  );
  values.forEach((value, i) => assert.equal(Number.isNaN(value), (i & 0x7fff) > 0x7c00));
  const shifted = new Uint8Array(5);
  shifted.set(view(Uint16Array.of(0x3c00, 0x8001)), 1);
  assert.deepEqual(toNumbers(DType.float16, shifted.subarray(1)), [1, -(2 ** -24)]);
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
