// Nodes on the JS provider: the protocol of jsepRun, transfers, lifetimes, errors, and conditions for a replay.
'use strict';
const assert = require('node:assert/strict');
const { test: plainTest } = require('node:test');
const { DTYPE, LOCATION } = require('./core.cjs');
const { bool, bytesOf, f32, fails, i64, noBuffersLeft, runOnce, start } = require('./harness.cjs');
const { cpu, js, PLACE, planOf } = require('./plan_of.cjs');

const FAIL = 1,
  INVALID_ARGUMENT = 2,
  NOT_IMPLEMENTED = 4,
  OUT_OF_MEMORY = 5,
  RUNTIME = 6;
let it;
const test = (name, body) =>
  plainTest(name, async (t) => {
    it = await start();
    await body(t);
  });

const chain = {
  inputs: ['x:float32[-1]'],
  outputs: ['c'],
  nodes: [js('Neg', 'x', 'a'), js('Neg', 'a', 'b'), js('Add', ['b', 'b'], 'c')],
};

test('kernels live as long as their session', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['x'],
      outputs: ['y'],
      nodes: [js('Neg', 'x', 'y', { domain: 'my.domain', attributes: { a: { i: 1 } } })],
    }),
  );
  assert.match(provider.log[0], /^createKernel Neg my\.domain \d{2,}$/);
  assert.equal(provider.kernels.size, 1);
  core.module._ort_session_release(session);
  assert.equal(provider.kernels.size, 0);
});

test('a chain: one upload, one dispatch a node, each buffer freed after its last use', async () => {
  const { core, provider } = it;
  const { values } = await runOnce(it, core.session(planOf(chain)), [f32(1, -2, 3)]);
  assert.deepEqual(values, [[2, -4, 6]]);
  assert.deepEqual(provider.log.slice(3), [
    'alloc 1 16',
    'copy 1 12',
    'run Neg',
    'alloc 2 16',
    'free 1',
    'run Neg',
    'alloc 3 16',
    'free 2',
    'run Add',
    'alloc 4 16',
    'free 3',
    'free 4',
  ]);
  noBuffersLeft(provider);
});

test('the words of jsepRun', async () => {
  const { core, provider } = it;
  const weights = {
    s: { dtype: 'int64', dims: [2], size: 16 },
    w: { dtype: 'float32', dims: [4], size: 16, places: PLACE.device },
  };
  const plan = planOf({
    inputs: ['x:float32'],
    outputs: ['y'],
    weights,
    nodes: [
      js('Reshape', ['w', 's'], 'y', { uses: ['device', 'host'] }),
      js('Nothing', ['x', '', 'w'], ['unread', ''], { uses: ['shape', 'device', 'device'] }),
    ],
  });
  provider.buffers.set(77, new Uint8Array(16));
  const session = core.session(plan, [{ index: 0, offset: 0, size: 16 }], bytesOf(i64(2, 2)), [[1, 77]]);
  const { dims } = await runOnce(it, session, [{ data: f32(1, 2), dims: [1, 2] }]);
  assert.deepEqual(dims, [[2, 2]]);
  const [reshape, nothing] = provider.calls;
  assert.deepEqual(reshape.inputs[0], {
    dtype: DTYPE.float32,
    location: LOCATION.device,
    data: 77,
    bytes: 16,
    dims: [4],
  });
  const host = reshape.inputs[1];
  assert.deepEqual([host.dtype, host.location, host.bytes, host.dims], [DTYPE.int64, LOCATION.cpu, 16, [2]]);
  assert.deepEqual(reshape.wanted, [1]);
  assert.deepEqual(nothing.inputs[0], {
    dtype: DTYPE.float32,
    location: LOCATION.none,
    data: 0,
    bytes: 0,
    dims: [1, 2],
  });
  assert.deepEqual(nothing.inputs[1], { dtype: 0, location: LOCATION.none, data: 0, bytes: 0, dims: [] });
  assert.deepEqual(nothing.wanted, [0, 0]);
  assert.equal(provider.count('copy'), 0, 'a shape input is not uploaded');
  assert.ok(provider.buffers.has(77), 'the page keeps its own buffers');
});

test('a view shares its buffer', async () => {
  const { core, provider } = it;
  const weights = { s: { dtype: 'int64', dims: [2], size: 16 } };
  const plan = planOf({
    inputs: ['x:float32'],
    outputs: ['z'],
    weights,
    nodes: [js('Neg', 'x', 'a'), js('Reshape', ['a', 's'], 'y', { uses: ['device', 'host'] }), js('Neg', 'y', 'z')],
  });
  const blob = (values) => [[{ index: 0, offset: 0, size: 16 }], bytesOf(values)];
  const { values, dims } = await runOnce(it, core.session(plan, ...blob(i64(2, 2))), [f32(1, 2, 3, 4)]);
  assert.deepEqual([values, dims], [[[1, 2, 3, 4]], [[2, 2]]]);
  assert.equal(provider.count('alloc'), 3);
  noBuffersLeft(provider);
  await fails(
    () => runOnce(it, core.session(plan, ...blob(i64(3, 3))), [f32(1, 2, 3, 4)]),
    INVALID_ARGUMENT,
    'output 0 of shape [3,3] cannot be a view of an input of shape [4]',
  );
  noBuffersLeft(provider);
});

test('a value needed in both places is moved once', async () => {
  const { core, provider } = it;
  const plan = planOf({
    inputs: ['x:float32[-1]'],
    outputs: ['d', 'e'],
    nodes: [
      js('Neg', 'x', 'a'),
      cpu('Relu', 'a', 'b'),
      cpu('Relu', 'a', 'c'),
      js('Add', ['a', 'b'], 'd'),
      js('Add', ['b', 'c'], 'e'),
    ],
  });
  const { values } = await runOnce(it, core.session(plan), [f32(-1, 2)], 2);
  assert.deepEqual(values, [
    [2, -2],
    [2, 0],
  ]);
  assert.equal(provider.count('copyAsync'), 1, 'a comes down once');
  assert.equal(provider.count('copy'), 3, 'x, b and c go up once');
  noBuffersLeft(provider);
});

test('64-bit integers and bool have 32 bits on the GPU, others their own', async (t) => {
  const { core, provider } = it;
  const cases = {
    int64: i64(-5, 7),
    uint64: BigUint64Array.from([5n, 4294967295n]),
    int16: Int16Array.from([-300, 300]),
    uint16: Uint16Array.from([65535, 1]),
    int8: Int8Array.from([-128, 3]),
    uint8: Uint8Array.from([255, 3]),
    bool: bool(1, 0),
    int32: Int32Array.from([-9, 9]),
  };
  for (const [dtype, feed] of Object.entries(cases)) {
    await t.test(dtype, async () => {
      const plan = planOf({
        inputs: [`x:${dtype}[-1]`],
        outputs: ['z'],
        nodes: [js('Neg', 'x', 'y'), js('Neg', 'y', 'w'), cpu('Identity', 'w', 'z')],
      });
      const { values } = await runOnce(it, core.session(plan), [feed]);
      assert.deepEqual(values[0], Array.from(feed.data ?? feed, Number));
    });
  }
  assert.ok(provider.log.includes('copy 1 8'), 'two int64 travel as two words');
  assert.ok(
    provider.log.some((line) => /^copy \d+ 4$/.test(line)),
    'two bytes travel in one word',
  );
});

test('float16 goes up and comes down as it is', async () => {
  const { core, provider } = it;
  const halves = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00);
  const plan = planOf({
    inputs: ['x:float16[-1]'],
    outputs: ['z'],
    nodes: [js('Two', 'x', ['a', 'b']), cpu('Identity', 'a', 'z')],
  });
  provider.log.length = 0;
  const { values } = await runOnce(it, core.session(plan), [{ data: halves, dtype: DTYPE.float16 }]);
  assert.deepEqual(values[0], Array.from(halves));
  assert.equal(provider.calls.at(-1).inputs[0].bytes, 10);
  assert.ok(
    provider.log.some((line) => line.startsWith('copy') && line.endsWith(' 12')),
    provider.log.join(),
  );
  noBuffersLeft(provider);
});

test('an int64 that has no 32-bit form is named', async () => {
  const session = it.core.session(planOf({ inputs: ['x:int64[-1]'], outputs: ['y'], nodes: [js('Neg', 'x', 'y')] }));
  const fields = await fails(
    () => runOnce(it, session, [i64(1, 2147483648)]),
    INVALID_ARGUMENT,
    "element 1 of 'x' is 2147483648",
    '32 bits',
  );
  assert.equal(fields.provider, 'device');
  noBuffersLeft(it.provider);
  assert.deepEqual((await runOnce(it, session, [i64(-2147483648)])).values[0].length, 1);
});

test('float64 and strings do not go to the GPU', async () => {
  const doubles = it.core.session(
    planOf({
      inputs: ['x:float32'],
      outputs: ['z'],
      nodes: [cpu('Cast', 'x', 'y', { attributes: { to: { i: 11 } } }), js('Neg', 'y', 'z')],
    }),
  );
  await fails(() => runOnce(it, doubles, [f32(1)]), NOT_IMPLEMENTED, "'y' cannot be on device: float64");
});

test('feeds in GPU buffers', async () => {
  const { core, provider } = it;
  const session = core.session(planOf(chain));
  provider.buffers.set(50, bytesOf(f32(5, 6, 0, 0)));
  const run = core.begin(session);
  core.feedDevice(run, 0, DTYPE.float32, [2], 50);
  await core.execute(run);
  assert.equal(core.output(run, 0).location, LOCATION.device);
  assert.equal(provider.count('copy'), 0);
  core.module._ort_run_end(run);
  assert.deepEqual([...provider.buffers.keys()], [50]);
});

test('failures of the page keep their code and words', async (t) => {
  const { core, provider } = it;
  const session = (op) =>
    core.session(
      planOf({
        inputs: ['x:float32[-1]'],
        outputs: ['y'],
        nodes: [js('Neg', 'x', 'a'), js(op, 'a', 'y', { name: 'culprit' })],
      }),
    );
  const check = async (name, code, words, op = name) => {
    const fields = await fails(() => runOnce(it, session(op), [f32(1)]), code, ...words, 'a float32[1]');
    assert.deepEqual([fields.node, fields.op_type, fields.provider], ['culprit', op, 'device']);
    noBuffersLeft(provider);
  };
  await t.test('by ort_jsep_error', () => check('Fails', RUNTIME, ['the fake kernel fails']));
  await t.test('by an exception', () => check('Throws', FAIL, ['the fake kernel throws']));
  await t.test('an output that is not made', () => check('Nothing', FAIL, ['did not make output 0']));
  await t.test('no buffer left', async () => {
    provider.limit = provider.last + 2; // x and a
    await check('no buffer', OUT_OF_MEMORY, ['no buffer of 16 bytes on device'], 'Neg');
    provider.limit = Infinity;
  });
  await t.test('a kernel that cannot be made', async () => {
    const fields = await fails(
      () => core.session(planOf({ inputs: ['x'], outputs: ['y'], nodes: [js('Sing', 'x', 'y')] })),
      FAIL,
      'no kernel for Sing',
    );
    assert.equal(fields.op_type, 'Sing');
  });
  await t.test('and the session goes on', async () =>
    assert.deepEqual((await runOnce(it, session('Neg'), [f32(1)])).values, [[1]]),
  );
});

test('replayable: only when the CPU read nothing of the feeds', async (t) => {
  const { core } = it;
  const host = { uses: ['device', 'host'] };
  const weights = { s: { dtype: 'int64', dims: [2], size: 16 } };
  const cases = {
    'GPU nodes alone, fed on the GPU': [chain, true, 'gpu'],
    'GPU nodes alone, a feed uploaded by the core': [chain, false],
    'a host input made of constants on the CPU': [
      { ...chain, weights, outputs: ['y'], nodes: [cpu('Identity', 's', 't'), js('Reshape', ['x', 't'], 'y', host)] },
      true,
      'gpu',
    ],
    'shapes of feeds': [
      {
        ...chain,
        outputs: ['y', 'x'],
        nodes: [cpu('Shape', 'x', 't', { uses: ['shape'] }), js('Reshape', ['x', 't'], 'y', host)],
      },
      true,
      'gpu',
    ],
    'a host input that depends on a feed': [
      { ...chain, outputs: ['y'], nodes: [js('Shape', 'x', 't'), js('Reshape', ['x', 't'], 'y', host)] },
      false,
      'gpu',
    ],
    'a CPU node that reads a feed': [{ ...chain, outputs: ['y'], nodes: [cpu('Relu', 'x', 'y')] }, false, 'gpu'],
    'random numbers': [
      { ...chain, outputs: ['r'], nodes: [cpu('RandomNormal', [], 'r', { attributes: { shape: { ints: [2] } } })] },
      false,
      'gpu',
    ],
    'a feed on the CPU that is an output': [{ ...chain, outputs: ['x'], nodes: [] }, false],
  };
  for (const [name, [source, expected, where]] of Object.entries(cases)) {
    await t.test(name, async () => {
      const session = core.session(
        planOf(source),
        source.weights ? [{ index: 0, offset: 0, size: 16 }] : [],
        bytesOf(i64(2, 2)),
      );
      const run = core.begin(session);
      it.provider.buffers.set(50, bytesOf(f32(1, 2, 3, 4)));
      if (where === 'gpu') core.feedDevice(run, 0, DTYPE.float32, [4], 50);
      else core.feed(run, 0, DTYPE.float32, [4], bytesOf(f32(1, 2, 3, 4)));
      await core.execute(run);
      assert.equal(core.module._ort_run_replayable(run) === 1, expected);
      core.module._ort_run_end(run);
    });
  }
});

test('refresh: what the CPU makes of feeds for the GPU, and nothing else', async (t) => {
  const { core } = it;
  const host = { uses: ['device', 'host'] };
  // The numbers of ort_run_refresh as [kernel's input, location, dims, the first element].
  const refresh = (source, feeds) => {
    const run = core.begin(core.session(planOf(source)));
    for (const [i, values] of feeds.entries())
      core.feed(run, i, DTYPE.float32, [values.length], bytesOf(f32(...values)));
    const heap = core.module.HEAPU32;
    let at = core.module._ort_run_refresh(run) >>> 2;
    assert.notEqual(at, 0);
    const count = heap[at++];
    if (count === 0xffffffff) return 'impossible';
    const told = Array.from({ length: count }, () => {
      const [, input, , location, data, , rank] = heap.subarray(at, at + 7);
      const dims = [...heap.subarray(at + 7, at + 7 + rank)];
      at += 7 + rank;
      return [input, location, dims, new Float32Array(heap.buffer, data, 1)[0]];
    });
    core.module._ort_run_end(run);
    return told;
  };
  const two = { inputs: ['x', 'z'], outputs: ['y'] };
  const cases = {
    'an upload': [{ ...two, nodes: [cpu('Relu', 'x', 'r'), js('Neg', 'r', 'y')] }, [[0, LOCATION.device, [1], 3]]],
    'a host input': [
      { ...two, nodes: [js('Neg', 'z', 'n'), cpu('Relu', 'x', 'r'), js('Reshape', ['n', 'r'], 'y', host)] },
      [
        [0, LOCATION.device, [2], 5],
        [1, LOCATION.cpu, [1], 3],
      ],
    ],
    'what follows from shapes of the GPU alone is as it was': [
      {
        ...two,
        nodes: [js('Neg', 'z', 'n'), cpu('Shape', 'n', 's', { uses: ['shape'] }), js('Reshape', ['n', 's'], 'y', host)],
      },
      [[0, LOCATION.device, [2], 5]],
    ],
    'a node of both': [
      { ...two, nodes: [js('Neg', 'z', 'n'), cpu('Add', ['n', 'x'], 'r'), js('Neg', 'r', 'y')] },
      'impossible',
    ],
    'random numbers': [
      { ...two, nodes: [cpu('RandomNormal', [], 'r', { attributes: { shape: { ints: [2] } } }), js('Neg', 'r', 'y')] },
      'impossible',
    ],
  };
  for (const [name, [source, expected]] of Object.entries(cases)) {
    await t.test(name, () => assert.deepEqual(refresh(source, [[3], [5, 6]]), expected));
  }
  await t.test('a node that fails is told', () => {
    const run = core.begin(core.session(planOf({ ...two, nodes: [cpu('Relu', 'x', 'r'), js('Neg', 'r', 'y')] })));
    assert.equal(core.module._ort_run_refresh(run), 0); // no feeds yet
    core.module._ort_run_end(run);
  });
});
