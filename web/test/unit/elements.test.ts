import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DType } from '../../src/schema';
import { narrow, toNumbers, widen } from '../../src/jsep/elements';

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
    assert.deepEqual(widen(DType[name], cpu), gpu);
    assert.deepEqual(narrow(DType[name], gpu), cpu);
  });
}

test('elements: what lies the same on both sides is not copied', () => {
  const bytes = view(Float32Array.of(1, 2));
  for (const dtype of [DType.float32, DType.int32, DType.uint32, DType.float16]) {
    assert.equal(widen(dtype, bytes), bytes);
    assert.equal(narrow(dtype, bytes), bytes);
  }
});

test('elements: integers beyond 32 bits are refused, not truncated', () => {
  assert.throws(() => widen(DType.int64, view(BigInt64Array.of(2n ** 31n))), /does not fit/);
  assert.throws(() => widen(DType.uint64, view(BigUint64Array.of(2n ** 32n))), /does not fit/);
  assert.throws(() => widen(DType.float64, view(Float64Array.of(1))), /no form on the GPU/);
});

test('elements: numbers of any alignment, large integers clamped', () => {
  const shifted = new Uint8Array(17);
  shifted.set(view(BigInt64Array.of(-3n, 2n ** 63n - 1n)), 1);
  assert.deepEqual(toNumbers(DType.int64, shifted.subarray(1)), [-3, Number.MAX_SAFE_INTEGER]);
});
