// Nodes that depend on weights only are computed when the session is made, not in its runs.
'use strict';
const assert = require('node:assert/strict');
const { test, before } = require('node:test');
const { bool, f32, fails, feedAll, i64, runOnce, start } = require('./harness.cjs');
const { cpu, js, planOf } = require('./plan_of.cjs');

const RUNTIME = 6;
let it;
before(async () => {
  it = await start();
});

const weight = (...values) => ({ dtype: 'float32', dims: [values.length], data: f32(...values) });
const add = (inputs, output) => cpu('Add', inputs, output);

/** The indices of the nodes that run. */
async function carriedOut(session, feeds) {
  const { core } = it;
  const run = core.begin(session);
  try {
    feedAll(core, run, feeds);
    core.module._ort_run_profile(run);
    await core.execute(run);
    const address = core.module._ort_run_times(run) >>> 0;
    const [count] = new Float64Array(core.module.HEAPU8.buffer, address, 1);
    const numbers = new Float64Array(core.module.HEAPU8.buffer, address + 8, 4 * count);
    return Array.from({ length: count }, (_, i) => numbers[4 * i]);
  } finally {
    core.module._ort_run_end(run);
  }
}

function session(graph, weights) {
  const sized = Object.fromEntries(
    Object.entries(weights).map(([name, { data, ...rest }]) => [name, { ...rest, size: data.byteLength }]),
  );
  const blob = new Uint8Array(
    Object.values(weights).reduce((sum, { data }) => sum + Math.ceil(data.byteLength / 64) * 64, 0),
  );
  let offset = 0;
  const given = Object.values(weights).map(({ data }, index) => {
    blob.set(new Uint8Array(data.buffer), offset);
    const entry = { index, offset, size: data.byteLength };
    offset += Math.ceil(data.byteLength / 64) * 64;
    return entry;
  });
  return it.core.session(planOf({ ...graph, weights: sized }), given, blob);
}

test('a chain of constants is gone, and its result is right in each run', async () => {
  const made = session(
    {
      inputs: ['x:float32[-1]'],
      outputs: ['y', 'c'],
      nodes: [cpu('Relu', 'w', 'a'), cpu('Neg', 'a', 'b'), add(['b', 'w'], 'c'), add(['x', 'c'], 'y')],
    },
    { w: weight(-1, 2) },
  );
  for (let i = 0; i < 3; i++)
    assert.deepEqual((await runOnce(it, made, [f32(10, 20)], 2)).values, [
      [9, 20],
      [-1, 0],
    ]);
  assert.deepEqual(await carriedOut(made, [f32(1, 2)]), [3]);
});

test('a kernel does not write over it', async () => {
  const made = session(
    { inputs: ['x:float32[-1]'], outputs: ['y'], nodes: [cpu('Neg', 'w', 'a'), add(['a', 'x'], 'y')] },
    { w: weight(1, 2) },
  );
  for (let i = 0; i < 2; i++) assert.deepEqual((await runOnce(it, made, [f32(5, 5)])).values, [[4, 3]]);
});

test('random numbers are new in each run', async () => {
  const attributes = { shape: { ints: [64n] } };
  const weights = {
    w: weight(...Array(64).fill(1)),
    half: { ...weight(0.5), dims: [] },
    train: { dtype: 'bool', dims: [], data: Uint8Array.of(1) },
  };
  for (const random of [cpu('RandomNormal', [], 'r', { attributes }), cpu('Dropout', ['w', 'half', 'train'], 'r')]) {
    const made = session({ inputs: [], outputs: ['y'], nodes: [random, cpu('Neg', 'r', 'y')] }, weights);
    const [first, second] = [await runOnce(it, made, []), await runOnce(it, made, [])];
    assert.notDeepEqual(first.values, second.values, random.opType);
    assert.equal(first.replayable, false);
  }
});

test('what fails is an error of the run, and of a branch only where it is taken', async () => {
  const gather = cpu('Gather', ['w', 'i'], 'y');
  const weights = { w: weight(1, 2), i: { dtype: 'int64', dims: [1], data: i64(7) } };
  const made = session({ inputs: [], outputs: ['y'], nodes: [gather] }, weights);
  await fails(() => runOnce(it, made, []), RUNTIME, 'index 7');
  const branches = {
    then_branch: { outputs: ['t'], nodes: [cpu('Gather', ['w', 'i'], 't')] },
    else_branch: { outputs: ['e'], nodes: [cpu('Neg', 'w', 'e')] },
  };
  const either = session(
    { inputs: ['c:bool[]'], outputs: ['y'], nodes: [cpu('If', 'c', 'y', { subgraphs: branches })] },
    weights,
  );
  const scalar = (value) => ({ ...bool(value), dims: [] });
  assert.deepEqual((await runOnce(it, either, [scalar(false)])).values, [[-1, -2]]);
  await fails(() => runOnce(it, either, [scalar(true)]), RUNTIME, 'index 7');
});

test('in the body of a loop, all turns read it', async () => {
  const body = {
    inputs: ['i:int64[]', 'go:bool[]', 's:float32[-1]'],
    outputs: ['more', 'r'],
    nodes: [cpu('Neg', 'w', 'n'), cpu('Identity', 'go', 'more'), add(['s', 'n'], 'r')],
  };
  const made = session(
    {
      inputs: ['m:int64[]', 'x:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Loop', ['m', '', 'x'], 'y', { subgraphs: { body } })],
    },
    { w: weight(1, 10) },
  );
  const turns = { data: i64(3), dims: [] };
  for (let i = 0; i < 2; i++) assert.deepEqual((await runOnce(it, made, [turns, f32(0, 0)])).values, [[-3, -30]]);
  assert.equal((await carriedOut(made, [turns, f32(0, 0)])).length, 7);
});

test("what the GPU makes of weights is not the CPU provider's to compute", async () => {
  const made = session(
    {
      inputs: ['x:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Relu', 'w', 'a'), js('Neg', 'a', 'b'), js('Add', ['x', 'b'], 'y')],
    },
    { w: weight(1, -2) },
  );
  for (let i = 0; i < 2; i++) assert.deepEqual((await runOnce(it, made, [f32(5, 5)])).values, [[4, 5]]);
  assert.deepEqual(await carriedOut(made, [f32(1, 2)]), [1, 2]);
});

test('of what would take much more memory than its weights no copy is kept', async () => {
  const { core } = it;
  const shape = { dtype: 'int64', dims: [1], data: i64(20_000_000) };
  const count = () => new Uint32Array(core.module.HEAPU8.buffer, core.module._ort_tensor_bytes(0) >>> 0, 1)[0];
  const before = count();
  const made = session(
    {
      inputs: ['x:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Expand', ['w', 's'], 'a', { uses: ['device', 'host'] }), add(['x', 'a'], 'y')],
    },
    { w: weight(1), s: shape },
  );
  assert.ok(count() - before < 1 << 20, `${count() - before} bytes are kept`);
  assert.equal((await carriedOut(made, [f32(1)])).length, 2);
});
