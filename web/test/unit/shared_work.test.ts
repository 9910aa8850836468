import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onSharedMemory } from '../../src/core/shared_memory';
import { CHUNK_BITS, CLOSED, Word, workOff } from '../../src/core/shared_work';

const section = (id: number, ...bytes: number[]): number[] => [id, bytes.length, ...bytes];
const name = (text: string): number[] => [text.length, ...Buffer.from(text)];
const memory = (...limits: number[]): number[] => [...name('env'), ...name('memory'), 2, ...limits];
/** Imports before the memory, which must be found among them. */
const OTHERS: Record<string, number[][]> = {
  alone: [],
  'a function': [[...name('env'), ...name('f'), 0, 0]],
  'a global and a table': [
    [...name('env'), ...name('g'), 3, 0x7f, 1],
    [...name('env'), ...name('t'), 1, 0x70, 1, 0, 5],
  ],
};
const imported = {
  f: () => undefined,
  g: new WebAssembly.Global({ value: 'i32', mutable: true }, 0),
  t: new WebAssembly.Table({ element: 'anyfunc', initial: 2, maximum: 5 }),
};

for (const [what, others] of Object.entries(OTHERS)) {
  test(`shared memory: ${what}`, () => {
    const imports = [...others, memory(1, 1, 0x80, 0x80, 4)];
    const bytes = Uint8Array.of(
      0,
      0x61,
      0x73,
      0x6d,
      1,
      0,
      0,
      0,
      ...section(1, 1, 0x60, 0, 0),
      ...section(2, imports.length, ...imports.flat()),
    );
    const shared = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
    const instantiate = (module: Uint8Array<ArrayBuffer>) =>
      new WebAssembly.Instance(new WebAssembly.Module(module), { env: { ...imported, memory: shared } });
    assert.throws(() => instantiate(bytes), WebAssembly.LinkError);
    instantiate(onSharedMemory(bytes));
  });
}

/** The work of a thread in a job of 10 units in chunks of 4. */
function done(me: number, words: Partial<Record<Word, number>> = {}): number[][] {
  const block = new Int32Array(new SharedArrayBuffer(Word.count * 4));
  const job = {
    [Word.units]: 10,
    [Word.chunk]: 4,
    [Word.chunks]: 3,
    [Word.threads]: 2,
    [Word.scratch]: 64,
    [Word.scratchStride]: 16,
    [Word.claim]: 5 << CHUNK_BITS,
  };
  for (const [word, value] of Object.entries({ ...job, ...words })) block[Number(word)] = value;
  const calls: number[][] = [];
  workOff(block, me, () => (_, scratch, begin, end) => calls.push([scratch, begin, end]));
  assert.equal(block[Word.done], calls.length);
  return calls;
}

const JOBS: Record<string, [number, Partial<Record<Word, number>>, number[][]]> = {
  'all of a job': [
    0,
    {},
    [
      [64, 0, 4],
      [64, 4, 8],
      [64, 8, 10],
    ],
  ],
  'another thread has scratch space of its own': [
    1,
    {},
    [
      [80, 0, 4],
      [80, 4, 8],
      [80, 8, 10],
    ],
  ],
  'what others left': [0, { [Word.claim]: (5 << CHUNK_BITS) + 2 }, [[64, 8, 10]]],
  'a thread too many': [2, {}, []],
  'nothing is left': [0, { [Word.claim]: (5 << CHUNK_BITS) + 3 }, []],
  'between two jobs': [0, { [Word.claim]: CLOSED }, []],
};

for (const [what, [me, words, expected]] of Object.entries(JOBS)) {
  test(`shared work: ${what}`, () => assert.deepEqual(done(me, words), expected));
}

test('shared work: a kernel that crashes is told', () => {
  const block = new Int32Array(new SharedArrayBuffer(Word.count * 4));
  Object.assign(block, {
    [Word.units]: 1,
    [Word.chunk]: 1,
    [Word.chunks]: 1,
    [Word.threads]: 1,
    [Word.claim]: 1 << CHUNK_BITS,
  });
  const { error } = console;
  console.error = () => undefined;
  workOff(block, 0, () => () => {
    throw new Error('out of bounds');
  });
  console.error = error;
  assert.deepEqual([block[Word.failed], block[Word.done]], [1, 1]);
});
