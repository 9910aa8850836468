import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Checksum, crc32 } from '../../src/wire/checksum';

const text = new TextEncoder().encode('123456789');

test('CRC-32 is that of everybody else', () => {
  assert.equal(crc32(text), 0xcbf43926);
  assert.equal(crc32(new Uint8Array(0)), 0);
});

/** The sum of bytes that arrive in pieces of these sizes, the last one first if `backwards`. */
function inPieces(bytes: Uint8Array, sizes: readonly number[], backwards: boolean): (number | undefined)[] {
  let start = 0;
  const pieces = sizes.map((size) => {
    start += size;
    return { offset: start - size, piece: bytes.subarray(start - size, start) };
  });
  const sum = new Checksum(bytes.byteLength);
  return (backwards ? pieces.reverse() : pieces).map(({ offset, piece }) => sum.add(offset, piece));
}

test('pieces come in any order and at any place of memory', () => {
  const sizes = [64, 1, 1 << 17, 3, 40, 7, 65536];
  const bytes = Uint8Array.from({ length: sizes.reduce((sum, size) => sum + size, 0) }, (_, i) => (i * i * 31) >> 7);
  const wanted = crc32(bytes);
  for (const backwards of [false, true]) {
    const found = inPieces(bytes, sizes, backwards);
    assert.equal(found.pop(), wanted);
    assert.ok(found.every((each) => each === undefined));
  }
  bytes[70000] ^= 4;
  assert.notEqual(inPieces(bytes, sizes, true).pop(), wanted);
});
