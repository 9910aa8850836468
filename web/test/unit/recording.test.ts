import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arena } from '../../src/device/arena';
import { FIRST_VIRTUAL_ID } from '../../src/device/buffers';
import type { Command } from '../../src/device/commands';
import type { DeviceWork } from '../../src/device/provider';
import { lifetimes, Recording, Segment } from '../../src/device/recording';

const [x, a, b, y, scratch] = [0, 1, 2, 3, 4].map((i) => FIRST_VIRTUAL_ID + i);
const copy = (source: number, target: number): Command => ({
  kind: 'copy',
  source: { id: source, bytes: 16 },
  target: { id: target, bytes: 16 },
});
const run = (commands: Command[], temps: { id: number; bytes: number }[] = []) => ({
  kind: 'run' as const,
  kernel: 1,
  words: new Uint32Array(0),
  host: new Map(),
  tests: [],
  outputs: [],
  commands,
  temps,
});

test('recording: lifetimes run from the first command that touches a tensor to the one before its free', () => {
  const segment = new Segment();
  segment.events.push(
    { kind: 'feed', id: x, bytes: 16, input: 0 },
    run([copy(x, scratch), copy(scratch, a)], [{ id: scratch, bytes: 16 }]),
    { kind: 'alloc', id: a, bytes: 16 },
    { kind: 'free', id: x },
    { kind: 'alloc', id: b, bytes: 16 },
    { kind: 'upload', id: b, data: new Uint8Array(16), fixed: false },
    run([copy(a, y)]),
    { kind: 'alloc', id: y, bytes: 16 },
    { kind: 'free', id: a },
    { kind: 'free', id: b },
  );
  const { tensors, freedAt } = lifetimes(segment);
  const spans = Object.fromEntries(tensors.map(({ id, start, end }) => [id, [start, end]]));
  assert.deepEqual(spans, { [x]: [-1, 1], [a]: [1, 2], [b]: [-1, 2], [y]: [2, Infinity], [scratch]: [0, 1] });
  assert.equal(freedAt.get(a), 2);
});

test('recording: after the last segment only survivors keep their memory', () => {
  const segment = new Segment();
  segment.events.push(
    { kind: 'feed', id: x, bytes: 16, input: 0 },
    run([copy(x, a)]),
    { kind: 'alloc', id: a, bytes: 16 },
    run([copy(a, y)]),
    { kind: 'alloc', id: y, bytes: 16 },
    run([copy(y, b)]),
    { kind: 'alloc', id: b, bytes: 16 },
  );
  const spans = lifetimes(segment, new Set([y])).tensors.map(({ id, start, end }) => [id, start, end]);
  assert.deepEqual(spans, [
    [x, -1, 0],
    [a, 0, 1],
    [y, 1, Infinity],
    [b, 2, 2],
  ]);
  assert.deepEqual(
    lifetimes(segment).tensors.map(({ end }) => end),
    [Infinity, Infinity, Infinity, Infinity],
  );
});

/** An arena whose buffers are counted. */
function counted() {
  const live = new Set<object>();
  const acquire = (size: number) => {
    const buffer = { size } as GPUBuffer;
    live.add(buffer);
    return buffer;
  };
  return { live, arena: new Arena({ acquire, release: (buffer) => void live.delete(buffer) }, Infinity) };
}

const [WEIGHT, FED] = [1, 2];
const WORK = {
  provider: { buffers: { get: (id: number) => ({ constant: id === WEIGHT }) } },
  asPlanned: (commands: Command[]) => commands,
} as unknown as DeviceWork;

/** y from a weight, a from a fed buffer, b from both. */
function recorded(): Recording {
  const recording = new Recording('');
  const segment = new Segment();
  segment.events.push(
    run([copy(WEIGHT, y)]),
    { kind: 'alloc', id: y, bytes: 16 },
    run([copy(FED, a)]),
    { kind: 'alloc', id: a, bytes: 16 },
    { kind: 'alloc', id: b, bytes: 16 },
    run([copy(y, b), copy(a, b)]),
    { kind: 'free', id: y },
    { kind: 'free', id: a },
  );
  recording.segments.push(segment);
  return recording;
}

test('recording: what is made of weights is kept apart from the memory that recordings share', () => {
  const { live, arena } = counted();
  const [one, two] = [recorded(), recorded()];
  for (const recording of [one, two]) {
    recording.place(0, arena, WORK, new Set([b]));
    assert.deepEqual([...recording.segments[0].fixed!.once], [0]);
    assert.deepEqual([...recording.segments[0].fixed!.kept], [y]);
  }
  assert.notEqual(one.placeOf(y).slot, two.placeOf(y).slot);
  assert.equal(one.placeOf(a).slot, two.placeOf(a).slot);
  assert.ok(one.placeOf(y).slot.kept && !one.placeOf(a).slot.kept);
  const buffers = live.size;
  one.truncate(0, 4, arena);
  assert.equal(live.size, buffers - 1, 'what was kept for commands that are gone');
  one.destroy(arena);
  two.destroy(arena);
  assert.equal(live.size, 0);
});

test('recording: what later segments find may be written there', () => {
  const { arena } = counted();
  const recording = recorded();
  recording.place(0, arena, WORK);
  assert.deepEqual([...recording.segments[0].fixed!.kept], [y], 'b lives on, y does not');
  recording.segments[0].events = recording.segments[0].events.filter((event) => event.kind !== 'free');
  recording.unplace(0, arena);
  recording.place(0, arena, WORK);
  assert.equal(recording.segments[0].fixed!.once.size, 0);
});
