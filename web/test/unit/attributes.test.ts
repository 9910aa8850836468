import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as flatbuffers from 'flatbuffers';
import { AttributesT, AttributeT, AttributeType, DType, ErrorCode, TensorValueT } from '../../src/schema';
import { Attributes } from '../../src/contract/attributes';

function packed(...items: AttributeT[]): Uint8Array {
  const builder = new flatbuffers.Builder();
  builder.finish(new AttributesT(items).pack(builder));
  return builder.asUint8Array();
}

function attribute(name: string, type: AttributeType, value: Partial<AttributeT>): AttributeT {
  return Object.assign(new AttributeT(name, type), value);
}

const constant = new TensorValueT(DType.float32, [1n], [...new Uint8Array(Float32Array.of(0.5).buffer)]);
const bytes = packed(
  attribute('axis', AttributeType.i, { i: -1n }),
  attribute('alpha', AttributeType.f, { f: 0.25 }),
  attribute('mode', AttributeType.s, { s: 'linear' }),
  attribute('pads', AttributeType.ints, { ints: [1n, 0n, -2n] }),
  attribute('scales', AttributeType.floats, { floats: [0.5, 2] }),
  attribute('names', AttributeType.strings, { strings: ['a', 'b'] }),
  attribute('value', AttributeType.tensor, { tensor: constant }),
);
const value = { dtype: DType.float32, dims: [1], bytes: new Uint8Array(Float32Array.of(0.5).buffer) };
const record = { axis: -1, alpha: 0.25, mode: 'linear', pads: [1, 0, -2], scales: [0.5, 2], names: ['a', 'b'], value };

for (const [source, attributes] of [
  ['a table', new Attributes(bytes)],
  ['a record', new Attributes(record)],
] as const) {
  test(`attributes: from ${source}`, () => {
    assert.equal(attributes.integer('axis', 0), -1);
    assert.equal(attributes.number('alpha', 0), 0.25);
    assert.equal(attributes.text('mode', ''), 'linear');
    assert.deepEqual(attributes.integers('pads'), [1, 0, -2]);
    assert.deepEqual(attributes.numbers('scales'), [0.5, 2]);
    assert.deepEqual(attributes.texts('names'), ['a', 'b']);
    assert.deepEqual(attributes.tensor('value'), value);
    assert.ok(attributes.has('axis') && !attributes.has('group'));
    assert.deepEqual(
      [attributes.integer('group', 1), attributes.text('none', 'x'), attributes.integers('none', [3])],
      [1, 'x', [3]],
    );
  });
}

test('attributes: none', () => {
  assert.equal(new Attributes(new Uint8Array(0)).number('alpha', 2), 2);
});

test('attributes: of another type than asked for', () => {
  const attributes = new Attributes(bytes);
  for (const read of [
    () => attributes.integer('mode', 0),
    () => attributes.text('axis', ''),
    () => attributes.integers('alpha'),
    () => attributes.texts('pads'),
    () => attributes.tensor('names'),
  ])
    assert.throws(read, { code: ErrorCode.invalid_graph });
});
