// Common code of the core's tests: a core with a fake JS provider, runs with typed arrays, and a check for leaks.
'use strict';
const assert = require('node:assert/strict');
const { Core, CoreError, DTYPE, LOCATION } = require('./core.cjs');
const { FakeProvider } = require('./fake_provider.cjs');

const ARRAYS = {
  1: Float32Array,
  2: Uint8Array,
  3: Int8Array,
  4: Uint16Array,
  5: Int16Array,
  6: Int32Array,
  7: BigInt64Array,
  9: Uint8Array,
  10: Uint16Array,
  12: Uint32Array,
  13: BigUint64Array,
};
const DTYPE_OF = new Map([
  [Float32Array, 1],
  [Uint8Array, 2],
  [Int8Array, 3],
  [Uint16Array, 4],
  [Int16Array, 5],
  [Int32Array, 6],
  [BigInt64Array, 7],
  [Uint32Array, 12],
  [BigUint64Array, 13],
]);

const bytesOf = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const f32 = (...values) => Float32Array.from(values);
const i64 = (...values) => BigInt64Array.from(values, BigInt);
const bool = (...values) => ({ data: Uint8Array.from(values, Number), dtype: DTYPE.bool });

async function start() {
  const core = await Core.load();
  return { core, provider: new FakeProvider(core) };
}

/** A feed: a typed array (1-D), or {data, dims?, dtype?}. */
function feedAll(core, run, feeds) {
  feeds.forEach((feed, i) => {
    const {
      data,
      dims = [data.length],
      dtype = DTYPE_OF.get(data.constructor),
    } = ArrayBuffer.isView(feed) ? { data: feed } : feed;
    core.feed(run, i, dtype, dims, bytesOf(data));
  });
}

/**
 * The elements of an output: numbers for a tensor on the CPU, the GPU's form for one in a fake buffer, lists for
 * sequences.
 */
function elements(value, provider) {
  if (value.items) return value.items.map((item) => elements(item, provider));
  if (value.location === LOCATION.cpu) return Array.from(new ARRAYS[value.dtype](value.bytes.buffer), Number);
  const count = value.dims.reduce((a, b) => a * b, 1);
  const Type = value.dtype === DTYPE.float32 ? Float32Array : Int32Array;
  return Array.from(new Type(provider.buffer(value.data).buffer, 0, count));
}

/** Runs once; returns {values, dims, replayable}, of all outputs. */
async function runOnce({ core, provider }, session, feeds, outputs = 1) {
  const run = core.begin(session);
  try {
    feedAll(core, run, feeds);
    await core.execute(run);
    const values = Array.from({ length: outputs }, (_, i) => core.output(run, i));
    return {
      values: values.map((v) => elements(v, provider)),
      dims: values.map((v) => v.dims),
      replayable: core.module._ort_run_replayable(run) === 1,
    };
  } finally {
    core.module._ort_run_end(run);
  }
}

/** Checks that `action` fails with this code, and a message with these words. Returns the error's fields. */
async function fails(action, code, ...words) {
  try {
    await action();
  } catch (error) {
    assert.ok(error instanceof CoreError, error.stack);
    for (const word of words) assert.ok(error.message.includes(word), `"${error.message}" does not say "${word}"`);
    assert.equal(error.fields.code, code, error.message);
    return error.fields;
  }
  throw new assert.AssertionError({ message: 'it did not fail' });
}

function noBuffersLeft(provider, but = []) {
  assert.deepEqual([...provider.buffers.keys()], but, 'GPU buffers were not freed');
}

module.exports = { start, runOnce, feedAll, elements, fails, noBuffersLeft, f32, i64, bool, bytesOf };
