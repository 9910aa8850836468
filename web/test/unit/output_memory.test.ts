import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OutputMemory } from '../../src/page/output_memory';

const LARGE = 2 << 20;

test('output memory: used again only when it was given back', () => {
  const memory = new OutputMemory();
  const [one, two] = [memory.borrow(), memory.borrow()];
  const first = one.copy(new Uint8Array(LARGE).fill(1));
  const second = two.copy(new Uint8Array(LARGE).fill(2));
  assert.notEqual(first.buffer, second.buffer);
  one.giveBack();
  const third = two.copy(new Uint8Array(LARGE - 100).fill(3));
  assert.equal(third.buffer, first.buffer);
  assert.equal(third.byteLength, LARGE - 100);
  assert.ok(second.every((value) => value === 2) && third.every((value) => value === 3));
});

test('output memory: what is much too large is left for others, and small copies are their own', () => {
  const memory = new OutputMemory();
  const run = memory.borrow();
  const large = run.copy(new Uint8Array(4 * LARGE));
  run.giveBack();
  assert.notEqual(memory.borrow().copy(new Uint8Array(LARGE)).buffer, large.buffer);
  const small = Uint8Array.of(1, 2, 3);
  const copied = memory.borrow().copy(small.subarray(1));
  assert.deepEqual([...copied], [2, 3]);
  assert.notEqual(copied.buffer, small.buffer);
});
