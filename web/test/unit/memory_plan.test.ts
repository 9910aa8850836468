import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Conflicts,
  type Held,
  largestSum,
  type Lifetime,
  planMemory,
  type Slot,
} from '../../src/device/memory_plan';

/** Checks the invariants, and returns the plan. */
function plan(tensors: Lifetime[], existing: Slot[] = [], conflicts: Conflicts = new Map()) {
  const result = planMemory(tensors, existing, { conflicts });
  const sizes = [...existing.map(({ bytes }) => bytes), ...result.newSlots];
  const all = [
    ...tensors.map((tensor) => ({ ...tensor, ...result.places.get(tensor.id)! })),
    ...existing.flatMap(({ held }, slot) => held.map((one) => ({ ...one, slot }))),
  ];
  all.forEach((a, i) => {
    assert.equal(a.offset % 256, 0, `tensor ${a.id} can be bound`);
    assert.ok(sizes[a.slot] >= a.offset + a.bytes, `tensor ${a.id} fits`);
    for (const b of all.slice(i + 1)) {
      if (b.slot !== a.slot) continue;
      const apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      assert.ok(
        apart || a.end < b.start || b.end < a.start,
        `tensors ${a.id} and ${b.id} share bytes one after the other`,
      );
      assert.ok(!conflicts.get(a.id)?.has(b.id), `tensors ${a.id} and ${b.id} conflict`);
    }
  });
  return result;
}

/** Each tensor is made from the previous one. */
function chain(bytes: number[]): { tensors: Lifetime[]; conflicts: Conflicts } {
  const tensors = bytes.map((size, i) => ({ id: i, bytes: size, start: i, end: i + 1 }));
  return { tensors, conflicts: new Map(bytes.map((_, i) => [i, new Set([i - 1, i + 1])])) };
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

test('memory: a chain needs two buffers', () => {
  const { tensors, conflicts } = chain(Array.from({ length: 20 }, () => 4096));
  assert.equal(plan(tensors, [], conflicts).newSlots.length, 2);
});

test('memory: what is never read and written together lies in one buffer', () => {
  const { newSlots } = plan([
    { id: 1, bytes: 1024, start: 0, end: 2 },
    { id: 2, bytes: 1024, start: 1, end: 2 },
  ]);
  assert.deepEqual(newSlots, [2048]);
});

test('memory: what is needed after the last command keeps its place', () => {
  const { newSlots } = plan([
    { id: 1, bytes: 64, start: 0, end: Infinity },
    { id: 2, bytes: 64, start: 5, end: 6 },
  ]);
  assert.ok(sum(newSlots) >= 128);
});

test('memory: existing buffers are used before new ones are made', () => {
  const held: Held[] = [{ id: 9, bytes: 8192, offset: 0, start: -1, end: 3 }];
  const existing = [
    { bytes: 1 << 20, held: [] },
    { bytes: 8192, held },
  ];
  const tensors = [
    { id: 1, bytes: 4000, start: 0, end: 9 },
    { id: 2, bytes: 8000, start: 4, end: 9 },
  ];
  assert.deepEqual(plan(tensors, existing).newSlots, []);
});

test('memory: a network that shrinks and grows stays near the lower bound', () => {
  const sizes = [100, 80, 80, 40, 90, 20, 10, 40, 60, 5, 5].map((size) => size << 12);
  const { tensors, conflicts } = chain(sizes);
  assert.ok(sum(plan(tensors, [], conflicts).newSlots) <= 1.1 * largestSum(tensors));
});

test('memory: random lifetimes never overlap in a buffer, and share well', () => {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let round = 0; round < 50; round++) {
    const tensors = Array.from({ length: 60 }, (_, id) => {
      const start = random(100) - 1;
      return { id, bytes: 16 * (1 + random(5000)), start, end: random(8) === 0 ? Infinity : start + random(12) };
    });
    const conflicts = new Map<number, Set<number>>();
    for (let i = 0; i < 40; i++) {
      const [a, b] = [random(60), random(60)];
      if (a === b) continue;
      conflicts.set(a, (conflicts.get(a) ?? new Set()).add(b));
      conflicts.set(b, (conflicts.get(b) ?? new Set()).add(a));
    }
    const existing = Array.from({ length: random(6) }, (_, i) => ({
      bytes: 80000,
      held: [{ id: 100 + i, bytes: 16 * (1 + random(5000)), offset: 0, start: -1, end: [20, Infinity][random(2)] }],
    }));
    const { newSlots } = plan(tensors, existing, conflicts);
    assert.ok(sum(newSlots) <= 2.5 * largestSum(tensors), `round ${round}`);
  }
});

test('memory: thousands of tensors are planned in a moment', () => {
  const { tensors, conflicts } = chain(Array.from({ length: 20000 }, (_, i) => 256 * (1 + (i % 97))));
  const start = performance.now();
  assert.equal(planMemory(tensors, [], { conflicts }).places.size, tensors.length);
  assert.ok(performance.now() - start < 20000);
});
