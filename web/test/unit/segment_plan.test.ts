import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestSum, type Lifetime } from '../../src/device/memory_plan';
import { type Access, planSegment, type SegmentPlan } from '../../src/device/segment_plan';

interface Network {
  readonly tensors: Lifetime[];
  readonly accesses: Access[];
}

/** The plan, after checks of its invariants: no bytes lost, no binding that WebGPU refuses. */
function planned({ tensors, accesses }: Network): SegmentPlan {
  const plan = planSegment(tensors, accesses);
  const placed = tensors.map((tensor) => ({ ...tensor, ...plan.places.get(tensor.id)! }));
  const heirs = new Map(
    [...plan.inPlace].map(([i, [read, write]]) => [accesses[i].reads[read], accesses[i].writes[write]]),
  );
  placed.forEach((a, i) => {
    assert.ok(a.offset + a.bytes <= plan.newSlots[a.slot], `tensor ${a.id} fits`);
    for (const b of placed.slice(i + 1)) {
      const apart = a.slot !== b.slot || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      const inherits = heirs.get(a.id) === b.id || heirs.get(b.id) === a.id;
      assert.ok(
        apart || a.end < b.start || b.end < a.start || (inherits && (a.end === b.start || b.end === a.start)),
        `tensors ${a.id} and ${b.id} share no bytes`,
      );
    }
  });
  for (const [i, [read, write]] of plan.inPlace) {
    const [from, to] = [accesses[i].reads[read], accesses[i].writes[write]];
    assert.deepEqual(plan.places.get(from), plan.places.get(to), `command ${i} writes where it reads`);
    assert.ok(
      accesses[i].inPlace!.some(([r, w]) => r === read && w === write),
      `command ${i} may`,
    );
  }
  accesses.forEach((access, i) => {
    if (access.alias || plan.aliased.has(i)) return;
    const written = access.writes.map((id) => plan.places.get(id)?.slot);
    const left = access.reads.filter((_, k) => k !== plan.inPlace.get(i)?.[0]);
    assert.ok(
      left.every((id) => !plan.places.has(id) || !written.includes(plan.places.get(id)!.slot)),
      `command ${i} reads and writes different buffers`,
    );
  });
  return plan;
}

const bytesOf = ({ newSlots }: SegmentPlan) => newSlots.reduce((sum, bytes) => sum + bytes, 0);
const ELEMENTWISE: Access['inPlace'] = [[0, 0]];

/** Builds networks command by command; a tensor lives from its first to its last command. */
class Builder {
  readonly bytes: number[] = [];
  readonly accesses: Access[] = [];

  /** A command of pipeline `group` that makes a tensor from these. */
  make(bytes: number, reads: readonly number[], group = `group of ${bytes}`, inPlace?: Access['inPlace']): number {
    this.bytes.push(bytes);
    this.accesses.push({ reads, writes: [this.bytes.length - 1], group, inPlace });
    return this.bytes.length - 1;
  }

  network(outputs: readonly number[] = [this.bytes.length - 1]): Network {
    const tensors = this.bytes.map((bytes, id): Lifetime => {
      const uses = this.accesses.flatMap(({ reads, writes }, i) =>
        reads.includes(id) || writes.includes(id) ? [i] : [],
      );
      return { id, bytes, start: uses[0], end: outputs.includes(id) ? Infinity : uses[uses.length - 1] };
    });
    return { tensors, accesses: this.accesses };
  }
}

/** Random numbers from `seed`, the same ones each time. */
function chance(seed: number): (below: number) => number {
  let state = seed * 7919 + 1;
  return (below) => (state = (state * 48271) % 0x7fffffff) % below;
}

const KIB = 1024;

const NETWORKS: { readonly [name: string]: (random: (below: number) => number) => Network } = {
  /** Bottlenecks whose sums are in the shortcut's place; some with a part for each share of a long sum. */
  residual(random) {
    const net = new Builder();
    let size = (64 + random(64)) * 16 * KIB;
    let x = net.make(size, []);
    for (let stage = 0; stage < 4; stage++) {
      for (let block = 0; block < 2 + random(4); block++) {
        const narrow = net.make(size / 4, [x], `narrow ${stage}`);
        const parts = random(2) ? net.make(size / 2, [narrow], `parts ${stage}`) : narrow;
        const middle = net.make(size / 4, [parts], `middle ${stage}`);
        const shortcut = block === 0 ? net.make(size, [x], `shortcut ${stage}`) : x;
        x = net.make(size, [middle, shortcut], `wide ${stage}`, [[1, 0]]);
      }
      size /= 2;
    }
    return net.network();
  },
  /** Each layer reads all earlier ones. */
  dense(random) {
    const net = new Builder();
    let kept = net.make(200 * KIB, []);
    for (let layer = 0; layer < 12 + random(20); layer++) {
      const size = net.bytes[kept];
      const normal = net.make(size, [kept], `normal ${random(2)}`, ELEMENTWISE);
      const squeezed = net.make((100 + random(100)) * KIB, [normal], 'squeeze');
      const grown = net.make(32 * KIB, [squeezed], 'grow');
      kept = net.make(size + 32 * KIB, [kept, grown], 'concat');
    }
    return net.network();
  },
  /** Down and up again, with skips. */
  encoder_decoder(random) {
    const net = new Builder();
    const skips: number[] = [];
    let size = (40 + random(40)) * 32 * KIB;
    let x = net.make(size, []);
    for (let level = 0; level < 5; level++) {
      for (let k = 0; k < 1 + random(3); k++)
        x = net.make(size, [x], `conv ${size}`, random(3) ? undefined : ELEMENTWISE);
      skips.push(x);
      size /= 2;
      x = net.make(size, [x], `down ${size}`);
    }
    for (const skip of skips.reverse()) {
      size *= 2;
      const up = net.make(size, [x], `up ${size}`);
      const both = net.make(2 * size, [up, skip], 'concat');
      x = net.make(size, [both], `conv of both ${size}`);
      x = net.make(size, [x], `activation ${size}`, ELEMENTWISE);
    }
    return net.network();
  },
  transformer(random) {
    const net = new Builder();
    const size = (10 + random(200)) * KIB;
    const wide = 2 + random(3);
    let x = net.make(size, []);
    for (let layer = 0; layer < 3 + random(9); layer++) {
      const packed = net.make(3 * size, [x], 'packed');
      const scores = random(2) ? net.make(random(8) * 16 * KIB + 256, [packed], 'scores') : packed;
      const attention = net.make(size, [packed, scores].slice(0, scores === packed ? 1 : 2), 'attention');
      const sum = net.make(size, [attention, x], 'out', [[1, 0]]);
      const normal = net.make(size, [sum], 'norm', layer % 2 ? ELEMENTWISE : undefined);
      const hidden = net.make(wide * size, [normal], 'up');
      const activated = net.make(wide * size, [hidden], 'gelu', ELEMENTWISE);
      x = net.make(size, [activated, normal], 'down', [[1, 0]]);
    }
    return net.network();
  },
  /** Branches of several lengths, joined. */
  branches(random) {
    const net = new Builder();
    let x = net.make(400 * KIB, []);
    for (let block = 0; block < 3 + random(6); block++) {
      const ends = Array.from({ length: 2 + random(3) }, (_, branch) => {
        let y = x;
        for (let k = 0; k < 1 + random(3); k++) y = net.make((20 + random(150)) * KIB, [y], `branch ${branch} ${k}`);
        return y;
      });
      x = net.make(
        ends.reduce((sum, id) => sum + net.bytes[id], 0),
        ends,
        'concat',
      );
    }
    return net.network();
  },
};

for (const [name, make] of Object.entries(NETWORKS)) {
  test(`segment: the memory of random networks is within a tenth of the lower bound: ${name}`, () => {
    for (let seed = 1; seed <= 40; seed++) {
      const plan = planned(make(chance(seed)));
      assert.ok(bytesOf(plan) <= 1.1 * plan.peak + 2 * KIB, `${name} ${seed}: ${bytesOf(plan)} bytes for ${plan.peak}`);
    }
  });
}

test('segment: an output takes the place of an input that ends there', () => {
  const net = new Builder();
  const x = net.make(4096, []);
  const y = net.make(4096, [x], 'relu', ELEMENTWISE);
  net.make(4096, [y], 'relu', ELEMENTWISE);
  const plan = planned(net.network());
  assert.equal(plan.inPlace.size, 2);
  assert.equal(plan.peak, 4096);
  assert.deepEqual(plan.newSlots, [4096]);
});

test("segment: what is still needed, bound twice, of another size or somebody else's is not written in place", () => {
  const cases: { readonly [name: string]: (net: Builder, x: number) => void } = {
    'needed later': (net, x) => {
      net.make(64, [net.make(4096, [x], 'relu', ELEMENTWISE), x], 'both');
    },
    'bound twice': (net, x) => {
      net.make(4096, [x, x], 'square', ELEMENTWISE);
    },
    'another size': (net, x) => {
      net.make(2048, [x], 'half', ELEMENTWISE);
    },
    'a weight': (net) => {
      net.make(4096, [-1], 'relu', ELEMENTWISE);
    },
  };
  for (const [name, build] of Object.entries(cases)) {
    const net = new Builder();
    build(net, net.make(4096, []));
    assert.equal(planned(net.network()).inPlace.size, 0, name);
  }
});

test('segment: an output of the run keeps its place', () => {
  const net = new Builder();
  const x = net.make(4096, []);
  const y = net.make(4096, [x], 'relu', ELEMENTWISE);
  assert.equal(planned(net.network([x, y])).inPlace.size, 0);
});

test('segment: no pipeline is made twice where that lowers no peak', () => {
  const net = new Builder();
  const large = net.make(1 << 20, []);
  let x = net.make(4096, [large], 'down');
  const kept = x;
  for (let i = 0; i < 4; i++) x = net.make(4096, [x], 'relu', ELEMENTWISE);
  net.make(4096, [x, kept], 'add');
  const plan = planned(net.network());
  assert.equal(plan.inPlace.size, 0, 'the first relu cannot, so none does');
  assert.equal(plan.peak, (1 << 20) + 4096);
});

test('segment: bindings stay as they are where different buffers cost little', () => {
  const net = new Builder();
  let x = net.make(1 << 20, []);
  for (let i = 0; i < 6; i++) x = net.make(1 << 20, [x], 'conv');
  const plan = planned(net.network());
  assert.equal(plan.aliased.size, 0);
  assert.equal(plan.newSlots.length, 2);
});

test('segment: what is held from before keeps its place, and counts', () => {
  const tensors: Lifetime[] = [{ id: 1, bytes: 8192, start: 0, end: 1 }];
  const held = { id: 9, bytes: 4096, offset: 0, start: -1, end: 3 };
  const plan = planSegment(
    tensors,
    [{ reads: [9], writes: [1], group: 'a', inPlace: ELEMENTWISE }],
    [{ bytes: 4096, held: [held] }],
  );
  assert.equal(plan.peak, 12288);
  assert.deepEqual(plan.newSlots, [8192]);
  assert.equal(largestSum(tensors), 8192);
});

test('segment: thousands of commands are planned in a moment', () => {
  const net = new Builder();
  let x = net.make(4096, []);
  for (let i = 0; i < 5000; i++)
    x = net.make(256 * (1 + (i % 7)), [x], `op ${i % 50}`, i % 3 ? ELEMENTWISE : undefined);
  const tensors = net.bytes.map((bytes, id): Lifetime => ({ id, bytes, start: id, end: id + 1 }));
  const start = performance.now();
  assert.equal(planSegment(tensors, net.accesses).places.size, tensors.length);
  assert.ok(performance.now() - start < 10000);
});

test('what an earlier segment put into one buffer is bound read_write', () => {
  const [a, b] = [0, 1].map((id): Lifetime => ({ id, bytes: 256, start: -1, end: 1 }));
  const existing = [
    {
      bytes: 512,
      held: [
        { ...a, offset: 0 },
        { ...b, offset: 256 },
      ],
    },
  ];
  const tensors: Lifetime[] = [{ id: 2, bytes: 256, start: 1, end: Infinity }];
  const accesses: Access[] = [
    { reads: [0], writes: [1], group: 'rows' },
    { reads: [1], writes: [2], group: 'sum' },
  ];
  assert.deepEqual([...planSegment(tensors, accesses, existing).aliased], [0]);
});
