import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRST_VIRTUAL_ID } from '../../src/gpu/buffers';
import type { Command } from '../../src/gpu/segment';
import { lifetimes, Segment } from '../../src/jsep/recording';

const [x, a, b, y, scratch] = [0, 1, 2, 3, 4].map((i) => FIRST_VIRTUAL_ID + i);
const copy = (source: number, target: number): Command => ({ kind: 'copy', source: { id: source, bytes: 16 }, target: { id: target, bytes: 16 } });
const run = (commands: Command[], temps: { id: number; bytes: number }[] = []) =>
  ({ kind: 'run' as const, kernel: 1, words: new Uint32Array(0), host: new Map(), tests: [], outputs: [], commands, temps });

test('recording: lifetimes run from the first command that touches a tensor to the one before its free', () => {
  const segment = new Segment();
  segment.events.push(
    { kind: 'feed', id: x, bytes: 16, input: 0 },
    run([copy(x, scratch), copy(scratch, a)], [{ id: scratch, bytes: 16 }]), { kind: 'alloc', id: a, bytes: 16 }, { kind: 'free', id: x },
    { kind: 'alloc', id: b, bytes: 16 }, { kind: 'upload', id: b, data: new Uint8Array(16), fixed: false },
    run([copy(a, y)]), { kind: 'alloc', id: y, bytes: 16 }, { kind: 'free', id: a }, { kind: 'free', id: b },
  );
  const { tensors, freedAt } = lifetimes(segment);
  const spans = Object.fromEntries(tensors.map(({ id, start, end }) => [id, [start, end]]));
  assert.deepEqual(spans, { [x]: [-1, 1], [a]: [1, 2], [b]: [-1, 2], [y]: [2, Infinity], [scratch]: [0, 1] });
  assert.equal(freedAt.get(a), 2);
});

test('recording: after the last segment only survivors keep their memory', () => {
  const segment = new Segment();
  segment.events.push(
    { kind: 'feed', id: x, bytes: 16, input: 0 }, run([copy(x, a)]), { kind: 'alloc', id: a, bytes: 16 },
    run([copy(a, y)]), { kind: 'alloc', id: y, bytes: 16 }, run([copy(y, b)]), { kind: 'alloc', id: b, bytes: 16 },
  );
  const spans = lifetimes(segment, new Set([y])).tensors.map(({ id, start, end }) => [id, start, end]);
  assert.deepEqual(spans, [[x, -1, 0], [a, 0, 1], [y, 1, Infinity], [b, 2, 2]]);
  assert.deepEqual(lifetimes(segment).tensors.map(({ end }) => end), [Infinity, Infinity, Infinity, Infinity]);
});
