// Runs on the CPU provider: feeds, outputs, errors, and sessions that survive errors.
'use strict';
const assert = require('node:assert/strict');
const { test, before } = require('node:test');
const { DTYPE } = require('./core.cjs');
const { bytesOf, f32, fails, i64, runOnce, start } = require('./harness.cjs');
const { cpu, js, PLACE, planOf } = require('./plan_of.cjs');

const INVALID_ARGUMENT = 2,
  OUT_OF_MEMORY = 5,
  RUNTIME = 6,
  NO_SUCH_SESSION = 9;
let it;
before(async () => {
  it = await start();
});

const relu = () =>
  it.core.session(planOf({ inputs: ['x:float32[-1]'], outputs: ['y'], nodes: [cpu('Relu', 'x', 'y')] }));

test('one node, twice in the same session', async () => {
  const session = relu();
  assert.deepEqual((await runOnce(it, session, [f32(-1, 2)])).values, [[0, 2]]);
  assert.deepEqual((await runOnce(it, session, [f32(3, -4, 5)])).values, [[3, 0, 5]]);
});

test('feeds that do not fit', async (t) => {
  const { core } = it;
  const session = relu();
  const cases = {
    'another dtype': [
      (run) => core.feed(run, 0, DTYPE.int32, [2], new Uint8Array(8)),
      "input 'x' wants float32, not int32",
    ],
    'another rank': [
      (run) => core.feed(run, 0, DTYPE.float32, [1, 2], new Uint8Array(8)),
      "input 'x' wants the shape [-1]",
      'not [1,2]',
    ],
    'too few bytes': [(run) => core.feed(run, 0, DTYPE.float32, [3], new Uint8Array(8)), 'has 8 bytes, not 12'],
    'a negative dimension': [
      (run) => core.feed(run, 0, DTYPE.float32, [-1], new Uint8Array(8)),
      'bad dtype (1) or shape',
    ],
    'an unknown dtype': [(run) => core.feed(run, 0, 99, [1], new Uint8Array(8)), 'bad dtype (99)'],
    'one input too many': [
      (run) => core.feed(run, 1, DTYPE.float32, [1], new Uint8Array(4)),
      'there is no input 1: the model has 1',
    ],
    'no feed at all': [(run) => core.execute(run), "input 'x' was not fed"],
    'strings cut short': [(run) => core.feed(run, 0, DTYPE.string, [1], new Uint8Array(3)), "input 'x' wants float32"],
  };
  for (const [name, [action, ...words]] of Object.entries(cases)) {
    await t.test(name, async () => {
      const run = core.begin(session);
      await fails(() => action(run), INVALID_ARGUMENT, ...words);
      core.module._ort_run_end(run);
    });
  }
  assert.deepEqual((await runOnce(it, session, [f32(-1)])).values, [[0]], 'the session is as good as before');
});

test('strings', async () => {
  const { core } = it;
  const session = core.session(
    planOf({
      inputs: ['x:string[-1]'],
      outputs: ['x', 'w'],
      weights: { w: { dtype: 'string', dims: [2], strings: ['ä', 'bc'] } },
    }),
  );
  const run = core.begin(session);
  const bytes = Uint8Array.of(2, 0, 0, 0, 104, 105, 0, 0, 0, 0);
  await fails(() => core.feed(run, 0, DTYPE.string, [3], bytes), INVALID_ARGUMENT, 'cut short');
  await fails(() => core.feed(run, 0, DTYPE.string, [2], bytes.slice(0, 8)), INVALID_ARGUMENT, 'string 1');
  core.feed(run, 0, DTYPE.string, [2], bytes);
  await core.execute(run);
  assert.deepEqual([...core.output(run, 0).bytes], [...bytes]);
  assert.deepEqual([...core.output(run, 1).bytes], [2, 0, 0, 0, 0xc3, 0xa4, 2, 0, 0, 0, 98, 99]);
  core.module._ort_run_end(run);
});

test('zero-sized tensors and scalars', async () => {
  const session = it.core.session(planOf({ inputs: ['x:float32'], outputs: ['y'], nodes: [cpu('Relu', 'x', 'y')] }));
  assert.deepEqual((await runOnce(it, session, [{ data: f32(), dims: [0, 3] }])).dims, [[0, 3]]);
  assert.deepEqual((await runOnce(it, session, [{ data: f32(-1), dims: [] }])).values, [[0]]);
});

test('outputs that nobody wants, omitted ones, and one that is asked for twice', async () => {
  const { core } = it;
  const session = core.session(
    planOf({
      inputs: ['x:float32[-1]'],
      outputs: ['y', 'y', 'x'],
      nodes: [cpu('Relu', 'x', 'y'), cpu('Relu', 'y', 'unread'), cpu('Relu', 'y', '')],
    }),
  );
  assert.deepEqual((await runOnce(it, session, [f32(-1, 1)], 3)).values, [
    [0, 1],
    [0, 1],
    [-1, 1],
  ]);
  const run = core.begin(session);
  await fails(() => core.output(run, 0), INVALID_ARGUMENT, 'the run is not done');
  core.module._ort_run_end(run);
});

test('a kernel that fails says where, and on what', async () => {
  const plan = {
    inputs: ['x:float32', 's:int64'],
    outputs: ['z'],
    nodes: [cpu('Relu', 'x', 'y'), cpu('Reshape', ['y', 's'], 'z', { name: 'inner', origin: 'layer7/Reshape' })],
  };
  const session = it.core.session(planOf(plan));
  const fields = await fails(
    () => runOnce(it, session, [f32(1, 2, 3), i64(2, 2)]),
    RUNTIME,
    '[inputs: y float32[3], s int64[2]]',
  );
  assert.deepEqual([fields.node, fields.op_type, fields.provider], ['layer7/Reshape', 'Reshape', 'wasm']);
  assert.deepEqual((await runOnce(it, session, [f32(1, 2, 3, 4), i64(2, 2)])).dims, [[2, 2]]);
});

test('no memory is an error, and leaves the session usable', async () => {
  const session = it.core.session(
    planOf({ inputs: ['s:int64'], outputs: ['y'], nodes: [cpu('ConstantOfShape', 's', 'y')] }),
  );
  for (const shape of [i64(1 << 30, 2), i64(1 << 30, 1 << 30, 1 << 30)])
    await fails(
      () => runOnce(it, session, [shape]),
      OUT_OF_MEMORY,
      'no memory for a float32 tensor of shape [1073741824,',
    );
  assert.deepEqual((await runOnce(it, session, [i64(3)])).values, [[0, 0, 0]]);
});

test('a run is executed once, and is gone when ended', async () => {
  const { core } = it;
  const run = core.begin(relu());
  core.feed(run, 0, DTYPE.float32, [1], bytesOf(f32(1)));
  await core.execute(run);
  await fails(() => core.execute(run), INVALID_ARGUMENT, 'executed once');
  await fails(() => core.feed(run, 0, DTYPE.float32, [1], bytesOf(f32(1))), INVALID_ARGUMENT, 'has started');
  core.module._ort_run_end(run);
  await fails(() => core.execute(run), INVALID_ARGUMENT, `no run ${run}`);
});

test('a run outlives the release of its session', async () => {
  const { core } = it;
  const session = relu();
  const run = core.begin(session);
  core.module._ort_session_release(session);
  await fails(() => core.begin(session), NO_SUCH_SESSION, `no session ${session}`);
  core.feed(run, 0, DTYPE.float32, [2], bytesOf(f32(-1, 1)));
  await core.execute(run);
  assert.deepEqual([...core.output(run, 0).bytes.slice(4)], [0, 0, 128, 63]);
  core.module._ort_run_end(run);
});

test('a session that is not prepared begins no run', async () => {
  const { core } = it;
  const plan = planOf({
    inputs: ['x'],
    outputs: ['y'],
    nodes: [js('Neg', 'x', 'y')],
    weights: { w: { dtype: 'float32', dims: [1], size: 4, places: PLACE.device } },
  });
  const session = core.check(core.module._ort_session_create(core.copyIn(plan), plan.length));
  await fails(() => core.begin(session), INVALID_ARGUMENT, 'not prepared');
  await fails(
    () => core.check(core.module._ort_session_prepare(session)),
    INVALID_ARGUMENT,
    "weight 'w' was not put on its device",
  );
});

test('the heap does not grow from run to run', async () => {
  const session = it.core.session(
    planOf({ inputs: ['x:float32[-1]'], outputs: ['z'], nodes: [cpu('Relu', 'x', 'y'), cpu('Relu', 'y', 'z')] }),
  );
  const data = new Float32Array(1 << 20);
  await runOnce(it, session, [data]);
  const before = it.core.module.HEAPU8.length;
  for (let i = 0; i < 20; i++) await runOnce(it, session, [data]);
  assert.equal(it.core.module.HEAPU8.length, before);
});

test('an output takes over the memory of an input that ends, and of no other', async (t) => {
  const count = 1 << 16,
    bytes = 4 * count;
  const feed = [Float32Array.from({ length: count }, (_, i) => i - 100)];
  const inputs = [`x:float32[${count}]`];
  const ones = { dtype: 'float32', dims: [count], bytes: bytesOf(new Float32Array(count).fill(1)) };
  const halves = { dtype: 'int64', dims: [2], bytes: bytesOf(i64(2, count / 2)) };
  // A plan without its inputs, the number of tensors that it needs at one time, and output 0.
  const cases = {
    'a chain needs one tensor': [
      {
        outputs: ['d'],
        nodes: [cpu('Neg', 'x', 'a'), cpu('Neg', 'a', 'b'), cpu('Relu', 'b', 'c'), cpu('Softplus', 'c', 'd')],
      },
      1,
      () => Math.log(2),
    ],
    'a sum takes one of its terms': [
      { outputs: ['c'], nodes: [cpu('Abs', 'x', 'a'), cpu('Sub', ['x', 'a'], 'b'), cpu('Neg', 'b', 'c')] },
      2,
      (i) => 2 * (100 - i),
    ],
    'twice the same input': [
      { outputs: ['b'], nodes: [cpu('Neg', 'x', 'a'), cpu('Mul', ['a', 'a'], 'b')] },
      2,
      (i) => (i - 100) ** 2,
    ],
    'an output of the run': [
      { outputs: ['b', 'a'], nodes: [cpu('Neg', 'x', 'a'), cpu('Neg', 'a', 'b')] },
      2,
      (i) => i - 100,
    ],
    'another view of the same memory': [
      {
        outputs: ['c', 'b'],
        weights: { halves },
        nodes: [cpu('Neg', 'x', 'a'), cpu('Reshape', ['a', 'halves'], 'b'), cpu('Neg', 'a', 'c')],
      },
      2,
      (i) => i - 100,
    ],
    // The negated weight is made before the run, and the sum reuses the feed's memory.
    'a weight, and what is made of it': [
      { outputs: ['b'], weights: { ones }, nodes: [cpu('Neg', 'ones', 'a'), cpu('Add', ['a', 'x'], 'b')] },
      1,
      (i) => i - 101,
    ],
  };
  const { core } = it;
  for (const [name, [{ weights = {}, ...plan }, tensors, expected]] of Object.entries(cases)) {
    await t.test(name, async () => {
      const [weight] = Object.values(weights);
      const size = weight?.bytes.length;
      const described = Object.fromEntries(
        Object.entries(weights).map(([key, { dtype, dims }]) => [key, { dtype, dims, size }]),
      );
      const bytesOfPlan = planOf({ inputs, ...plan, weights: described });
      const session = weight
        ? core.session(bytesOfPlan, [{ index: 0, offset: 0, size }], weight.bytes)
        : core.session(bytesOfPlan);
      for (let round = 0; round < 2; round++) {
        const before = core.word(core.module._ort_tensor_bytes(1) >>> 0);
        const { values } = await runOnce(it, session, feed);
        for (let i = 0; i < 3; i++)
          assert.ok(Math.abs(values[0][i] - expected(i)) < 1e-4, `element ${i} is ${values[0][i]}, not ${expected(i)}`);
        const peak = core.word((core.module._ort_tensor_bytes(0) >>> 0) + 4) - before;
        assert.ok(
          peak >= tensors * bytes && peak < (tensors + 0.5) * bytes,
          `${peak} bytes for ${tensors} tensors of ${bytes}`,
        );
      }
    });
  }
});
