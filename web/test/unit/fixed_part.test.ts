import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Contents, type FixedPart, fixedPart } from '../../src/device/fixed_part';
import type { Lifetime } from '../../src/device/memory_plan';
import { type Access, planKept } from '../../src/device/segment_plan';

const WEIGHT = 1000;
const KIB = 1024;

/**
 * A segment written as its commands: `writes < reads`; tensors are letters, W is a weight, u… are uploads, x… are
 * feeds.
 */
interface Case {
  readonly commands: readonly string[];
  readonly outputs?: string;
  /** Uploads that are the same in every run; the others change. */
  readonly same?: string;
  readonly bytes?: { readonly [letter: string]: number };
  readonly room?: number;
  /** Tensors that kernels want kept like weights, with the same room again. */
  readonly ofWeights?: string;
  /** Expected: the indices of the remaining commands, the kept tensors, and the one-time uploads. */
  readonly left: readonly number[];
  readonly kept: string;
  readonly uploads?: string;
}

const CASES: { readonly [name: string]: Case } = {
  'what reads feeds is left': { commands: ['a <', 'b < a W', 'y < b x'], outputs: 'y', left: [2], kept: 'b' },
  'nothing is fixed': { commands: ['a < x', 'y < a W'], outputs: 'y', left: [0, 1], kept: '' },
  'a fixed output': { commands: ['a <', 'y < a'], outputs: 'y', left: [], kept: 'y' },
  'made by two commands': { commands: ['a <', 'a < W', 'y < a x'], outputs: 'y', left: [2], kept: 'a' },
  'written by another that is not fixed': {
    commands: ['a <', 'b < a', 'a < x', 'y < b a'],
    outputs: 'y',
    left: [0, 1, 2, 3],
    kept: '',
  },
  'written together with what is not fixed': {
    commands: ['a b <', 'b < x', 'y < a b'],
    outputs: 'y',
    left: [0, 1, 2],
    kept: '',
  },
  'the same upload': { commands: ['a < u', 'y < a x'], outputs: 'y', same: 'u', left: [1], kept: 'a', uploads: 'u' },
  'an upload that is read each time': {
    commands: ['y < u x'],
    outputs: 'y',
    same: 'u',
    left: [0],
    kept: 'u',
    uploads: 'u',
  },
  'another upload': { commands: ['a < u', 'y < a x'], outputs: 'y', left: [0, 1], kept: '' },
  'an upload that is written': {
    commands: ['u < W', 'y < u x'],
    outputs: 'y',
    same: 'u',
    left: [1],
    kept: 'u',
    uploads: 'u',
  },
  'an upload that is written each time': {
    commands: ['u < x', 'y < u'],
    outputs: 'y',
    same: 'u',
    left: [0, 1],
    kept: '',
  },
  'read before it is complete': {
    commands: ['a <', 'b < a x', 'a < W', 'y < a b'],
    outputs: 'y',
    left: [0, 1, 2, 3],
    kept: '',
  },
  "somebody else's tensor": { commands: ['y < Z', 'Z < W'], outputs: 'y', left: [0, 1], kept: '' },
  'too large: what it is made of is kept': {
    commands: ['a <', 'b < a', 'y < b x'],
    outputs: 'y',
    bytes: { b: 9 * KIB },
    room: 8 * KIB,
    left: [1, 2],
    kept: 'a',
  },
  'too large from the start': {
    commands: ['a <', 'y < a x'],
    outputs: 'y',
    bytes: { a: 9 * KIB },
    room: 8 * KIB,
    left: [0, 1],
    kept: '',
  },
  'too large, but never read again': {
    commands: ['a <', 'b < a', 'y < b x'],
    outputs: 'y',
    bytes: { a: 9 * KIB },
    room: 8 * KIB,
    left: [2],
    kept: 'b',
  },
  'the largest go first': {
    commands: ['a <', 'b <', 'c <', 'y < a b c x'],
    outputs: 'y',
    bytes: { a: 3 * KIB, b: 4 * KIB, c: 2 * KIB },
    room: 5 * KIB,
    left: [1, 3],
    kept: 'ac',
  },
  'made together': {
    commands: ['a b <', 'b < W', 'y < a b x'],
    outputs: 'y',
    bytes: { a: 9 * KIB },
    room: 8 * KIB,
    left: [0, 1, 2],
    kept: '',
  },
  'made of weights: no room is taken from others': {
    commands: ['a < W', 'b <', 'c < W', 'y < a b c x'],
    outputs: 'y',
    bytes: { a: 7 * KIB, b: 6 * KIB, c: 9 * KIB },
    ofWeights: 'ac',
    room: 8 * KIB,
    left: [2, 3],
    kept: 'ab',
  },
  'made of feeds for all that': {
    commands: ['a < W x', 'y < a'],
    outputs: 'y',
    ofWeights: 'a',
    left: [0, 1],
    kept: '',
  },
  'an upload that is too large is done each time, what is made of it once': {
    commands: ['a < u', 'y < a u x'],
    outputs: 'y',
    same: 'u',
    bytes: { u: 9 * KIB },
    room: 8 * KIB,
    left: [1],
    kept: 'a',
    uploads: '',
  },
};

function segmentOf({
  commands,
  outputs = '',
  same = '',
  bytes = {},
  ofWeights = '',
}: Pick<Case, 'commands' | 'outputs' | 'same' | 'bytes' | 'ofWeights'>) {
  const ids = (letters: string) =>
    letters
      .split(' ')
      .filter(Boolean)
      .map((letter) => (letter === 'W' ? WEIGHT : letter.charCodeAt(0)));
  const accesses = commands.map((text): Access => {
    const [writes, reads] = text.split('<').map(ids);
    return { reads, writes };
  });
  const all = [...new Set(accesses.flatMap(({ reads, writes }) => [...reads, ...writes]))].filter(
    (id) => id !== WEIGHT && id !== 'Z'.charCodeAt(0),
  );
  const tensors = all.map((id): Lifetime => {
    const letter = String.fromCharCode(id);
    const uses = accesses.flatMap(({ reads, writes }, i) => (reads.includes(id) || writes.includes(id) ? [i] : []));
    return {
      id,
      bytes: bytes[letter] ?? KIB,
      start: uses[0],
      end: outputs.includes(letter) ? Infinity : uses[uses.length - 1],
    };
  });
  const letters = (text: string) => new Set([...text].map((letter) => letter.charCodeAt(0)));
  const given = all.filter((id) => 'ux'.includes(String.fromCharCode(id)));
  const contents: Contents = {
    isWeight: (id) => id === WEIGHT,
    uploaded: letters(same),
    changing: new Set(given.filter((id) => !letters(same).has(id))),
    ofWeights: letters(ofWeights),
  };
  return { tensors, accesses, contents };
}

for (const [name, one] of Object.entries(CASES)) {
  test(`fixed part: ${name}`, () => {
    const { tensors, accesses, contents } = segmentOf(one);
    const { once, kept, uploads } = fixedPart(tensors, accesses, contents, {
      ofWeights: one.room ?? 64 * KIB,
      others: one.room ?? 64 * KIB,
    });
    const named = (ids: ReadonlySet<number>) =>
      [...ids]
        .map((id) => String.fromCharCode(id))
        .sort()
        .join('');
    assert.deepEqual(
      [...accesses.keys()].filter((i) => !once.has(i)),
      one.left,
      'commands',
    );
    assert.equal(named(kept), one.kept, 'kept');
    assert.equal(named(uploads), one.uploads ?? '', 'uploads');
  });
}

/** Random numbers from `seed`, the same ones each time. */
function chance(seed: number): (below: number) => number {
  let state = seed * 7919 + 1;
  return (below) => (state = (state * 48271) % 0x7fffffff) % below;
}

interface Drawn {
  readonly tensors: readonly Lifetime[];
  readonly accesses: readonly Access[];
  readonly contents: Contents;
  readonly feeds: ReadonlySet<number>;
}

/** Tensors 0 to 2 are feeds, 3 to 6 are uploads, of which 5 and 6 change. Some tensors are written again. */
function drawn(seed: number): Drawn {
  const random = chance(seed);
  const bytes = Array.from({ length: 7 }, () => KIB * (1 + random(8)));
  const accesses: Access[] = [];
  for (let i = 0; i < 6 + random(30); i++) {
    // Mostly of one kind, so that long chains are fixed.
    const sources = Array.from({ length: random(4) }, () => (random(3) ? random(bytes.length) : WEIGHT));
    const reads = random(3) ? sources.filter((id) => id > 2 && (id < 5 || id > 6)) : sources;
    const writes = [
      random(6) || accesses.length === 0 ? bytes.push(KIB * (1 + random(8))) - 1 : 7 + random(bytes.length - 7),
    ];
    if (!random(5)) writes.push(bytes.push(KIB * (1 + random(8))) - 1);
    accesses.push({ reads: reads.filter((id) => !writes.includes(id)), writes });
  }
  const tensors = bytes.map((size, id): Lifetime => {
    const uses = accesses.flatMap(({ reads, writes }, i) => (reads.includes(id) || writes.includes(id) ? [i] : []));
    return { id, bytes: size, start: uses[0] ?? 0, end: random(6) ? (uses[uses.length - 1] ?? 0) : Infinity };
  });
  return {
    tensors,
    accesses,
    feeds: new Set([0, 1, 2]),
    contents: {
      isWeight: (id) => id === WEIGHT,
      uploaded: new Set([3, 4]),
      changing: new Set([0, 1, 2, 5, 6]),
      ofWeights: new Set([...bytes.keys()].filter((id) => id % 4 === 0)),
    },
  };
}

/**
 * The outputs of three runs, if memory that is not kept is lost between them. Contents are texts that describe how they
 * were made.
 */
function outputsOf({ tensors, accesses, contents }: Drawn, { once, kept, uploads }: FixedPart): string[][] {
  let memory = new Map<number, string>();
  return [0, 1, 2].map((run) => {
    memory = new Map([...memory].filter(([id]) => kept.has(id)));
    for (const id of contents.changing) memory.set(id, `${id} of run ${run}`);
    for (const id of contents.uploaded) if (run === 0 || !uploads.has(id)) memory.set(id, `upload ${id}`);
    accesses.forEach(({ reads, writes }, i) => {
      if (run > 0 && once.has(i)) return;
      const from = reads.map((id) => (id === WEIGHT ? 'weight' : (memory.get(id) ?? 'nothing')));
      const first = (id: number) =>
        accesses.findIndex((other) => other.writes.includes(id)) === i && !contents.uploaded.has(id);
      // A part of the tensor may be written, except by the first command that writes it.
      for (const id of writes)
        memory.set(id, hash(`${i}: ${from.join()}; ${first(id) ? '' : (memory.get(id) ?? 'nothing')}`));
    });
    return tensors.filter(({ end }) => end === Infinity).map(({ id }) => memory.get(id) ?? 'nothing');
  });
}

function hash(text: string): string {
  let value = 5381;
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 33) ^ text.charCodeAt(i)) >>> 0;
  return value.toString(36);
}

test('fixed part: random segments give the same outputs run after run as if all were done each time', () => {
  const nothing: FixedPart = { once: new Set(), kept: new Set(), uploads: new Set() };
  let [left, all] = [0, 0];
  for (let seed = 1; seed <= 300; seed++) {
    const one = drawn(seed);
    for (const room of [0, 6 * KIB, 64 * KIB]) {
      const part = fixedPart(one.tensors, one.accesses, one.contents, { ofWeights: 2 * room, others: room });
      assert.deepEqual(outputsOf(one, part), outputsOf(one, nothing), `seed ${seed}, room ${room}`);
      for (const [ofWeights, most] of [
        [true, 2 * room],
        [false, room],
      ] as const) {
        const kept = one.tensors.filter(({ id }) => part.kept.has(id) && one.contents.ofWeights.has(id) === ofWeights);
        const bytes = kept.reduce((sum, tensor) => sum + tensor.bytes, 0);
        assert.ok(bytes <= most, `seed ${seed}: ${bytes} bytes kept`);
      }
      left += one.accesses.length - part.once.size;
      all += one.accesses.length;
    }
  }
  assert.ok(
    left > 0.3 * all && left < 0.8 * all,
    `${left} of ${all} commands are left: the segments are of both kinds`,
  );
});

test('fixed part: what is kept lies apart where a command reads and writes it, and side by side elsewhere', () => {
  const { tensors, accesses } = segmentOf({ commands: ['a <', 'b < a', 'c <', 'y < a b c x'], outputs: 'y' });
  const { places, newSlots } = planKept(tensors.slice(0, 3), accesses);
  const [a, b, c] = tensors.map(({ id }) => places.get(id));
  assert.notEqual(a!.slot, b!.slot);
  assert.equal(newSlots.length, 2);
  assert.deepEqual(newSlots.toSorted(), [KIB, 2 * KIB]);
  assert.ok(c);
});
