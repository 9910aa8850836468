import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Lifetime, planMemory, type Slot } from '../../src/gpu/memory_plan';

/** Checks what must always hold, and returns the plan. */
function plan(tensors: Lifetime[], existing: Slot[] = []) {
  const result = planMemory(tensors, existing);
  const sizes = [...existing.map(({ bytes }) => bytes), ...result.newSlots];
  for (const a of tensors) {
    const slot = result.slotOf.get(a.id)!;
    assert.ok(sizes[slot] >= a.bytes, `tensor ${a.id} fits`);
    if (slot < existing.length) assert.ok(a.start > existing[slot].busyUntil, `tensor ${a.id} waits for its slot`);
    for (const b of tensors) {
      if (a.id >= b.id || result.slotOf.get(b.id) !== slot) continue;
      assert.ok(a.end < b.start || b.end < a.start, `tensors ${a.id} and ${b.id} share a slot one after the other`);
    }
  }
  return result;
}

test('memory: a chain needs two buffers', () => {
  const chain = Array.from({ length: 20 }, (_, i) => ({ id: i, bytes: 4096, start: i, end: i + 1 }));
  assert.equal(plan(chain).newSlots.length, 2);
});

test('memory: the input of a command and its output never share', () => {
  const { slotOf } = plan([{ id: 1, bytes: 16, start: 0, end: 1 }, { id: 2, bytes: 16, start: 1, end: 2 }]);
  assert.notEqual(slotOf.get(1), slotOf.get(2));
});

test('memory: what is needed after the last command keeps its buffer', () => {
  const { newSlots } = plan([{ id: 1, bytes: 64, start: 0, end: Infinity }, { id: 2, bytes: 64, start: 5, end: 6 }]);
  assert.equal(newSlots.length, 2);
});

test('memory: feeds are there before the first command', () => {
  const { newSlots } = plan([{ id: 1, bytes: 64, start: -1, end: 0 }, { id: 2, bytes: 64, start: -1, end: 3 }]);
  assert.equal(newSlots.length, 2);
});

test('memory: existing buffers are used before new ones are made', () => {
  const existing = [{ bytes: 1 << 20, busyUntil: -Infinity }, { bytes: 4096, busyUntil: -Infinity }, { bytes: 8192, busyUntil: 3 }];
  const { slotOf, newSlots } = plan([{ id: 1, bytes: 4000, start: 0, end: 9 }, { id: 2, bytes: 8000, start: 4, end: 9 }], existing);
  assert.deepEqual(newSlots, []);
  assert.equal(slotOf.get(1), 1);
  assert.equal(slotOf.get(2), 2);
});

test('memory: random lifetimes never overlap in a buffer, and share well', () => {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let round = 0; round < 50; round++) {
    const tensors = Array.from({ length: 60 }, (_, id) => {
      const start = random(100) - 1;
      return { id, bytes: 16 * (1 + random(5000)), start, end: random(8) === 0 ? Infinity : start + random(12) };
    });
    const existing = Array.from({ length: random(6) }, () => ({ bytes: 16 * (1 + random(5000)), busyUntil: [-Infinity, 20, Infinity][random(3)] }));
    const { newSlots } = plan(tensors, existing);
    const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
    assert.ok(sum(newSlots) <= sum(tensors.map(({ bytes }) => bytes)) + 60 * 4096);
  }
});
