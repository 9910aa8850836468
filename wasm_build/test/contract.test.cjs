// A backend written to onnxruntime's contract, installed by jsepInit's eight arguments, runs against this core.
'use strict';
const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ContractBackend } = require('./contract_backend.cjs');
const { Core, DTYPE, LOCATION } = require('./core.cjs');
const { bytesOf, f32, fails, feedAll, i64 } = require('./harness.cjs');
const { cpu, js, PLACE, planOf } = require('./plan_of.cjs');

const FAIL = 1,
  INVALID_ARGUMENT = 2;

async function start() {
  const core = await Core.load();
  return { core, backend: new ContractBackend(core.module) };
}

/** The first output's floats and dims. */
async function run({ core, backend }, session, ...feeds) {
  const run = core.begin(session);
  try {
    feedAll(core, run, feeds);
    await core.execute(run);
    const { location, data, dims, bytes } = core.output(run, 0);
    const count = dims.reduce((a, b) => a * b, 1);
    const whole = location === LOCATION.cpu ? bytes : backend.get(data);
    return [Array.from(new Float32Array(whole.buffer, 0, count)), dims];
  } finally {
    core.module._ort_run_end(run);
  }
}

const one = (node) => planOf({ inputs: ['x:float32'], outputs: ['y:float32'], nodes: [node] });

test('a model on the GPU and the CPU: calls, attributes, words', async () => {
  const it = await start();
  const { core, backend } = it;
  const weights = {
    shape: { dtype: 'int64', dims: [2], size: 16 },
    bias: { dtype: 'float32', dims: [2], size: 8, places: PLACE.device },
  };
  const plan = planOf({
    inputs: ['x:float32'],
    outputs: ['y:float32'],
    weights,
    nodes: [
      js('Elu', 'x', 'a:float32', { attributes: { alpha: { f: 0.5 } } }),
      js('Reshape', ['a', 'shape'], 'b:float32', { uses: ['device', 'host'] }),
      cpu('Relu', 'b', 'c:float32'),
      js('Transpose', 'c', 'd:float32', { attributes: { perm: { ints: [1, 0] } } }),
      js('Add', ['d', 'bias'], 'y'),
    ],
  });
  const bias = backend.add(bytesOf(f32(10, 20)), 'weight');
  const session = core.session(plan, [{ index: 0, offset: 0, size: 16 }], bytesOf(i64(2, 3)), [[1, bias]]);
  backend.calls.length = 0;
  assert.deepEqual(await run(it, session, { data: f32(-1, 2, 3, 4, -5, 6), dims: [6] }), [
    [10, 24, 12, 20, 13, 26],
    [3, 2],
  ]);
  assert.deepEqual(backend.calls.slice(0, 7), [
    'alloc 32',
    'copy cpu 24',
    'run Elu',
    'alloc 32',
    'free 2',
    'run Reshape',
    'alloc 32',
  ]);
  assert.equal(backend.calls.filter((call) => call === 'copyAsync 24').length, 1, 'the run was suspended for Relu');
  const [elu, reshape] = backend.runs;
  assert.deepEqual(elu.inputs, [{ dataType: DTYPE.float32, data: 2, dims: [6] }]);
  assert.deepEqual(reshape.inputs[1].dims, [2]);
  assert.deepEqual([...backend.buffers.keys()], [bias], 'all else was freed');
  assert.equal(core.module.jsepBackend, backend);
  core.module._ort_session_release(session);
  assert.equal(backend.kernels.size, 0);
});

test('attributes of every type are a plain object', async () => {
  const { core, backend } = await start();
  const attributes = {
    axis: { i: -1 },
    none: { i: 0 },
    large: { i: 2 ** 40 },
    alpha: { f: 0.25 },
    mode: { s: 'linéar' },
    pads: { ints: [0, 1, -2] },
    scales: { floats: [1.5, -2] },
    names: { strings: ['a', 'bc', ''] },
    value: { tensor: { dtype: DTYPE.float32, dims: [1, 2], data: [0, 0, 128, 63, 0, 0, 0, 64] } },
  };
  const kept = () => [...backend.kernels.values()].at(-1).attributes;
  core.session(one(js('Elu', 'x', 'y', { attributes })));
  assert.deepEqual(kept(), {
    axis: -1,
    none: 0,
    large: 2 ** 40,
    alpha: 0.25,
    mode: 'linéar',
    pads: [0, 1, -2],
    scales: [1.5, -2],
    names: ['a', 'bc', ''],
    value: { dtype: DTYPE.float32, dims: [1, 2], bytes: [0, 0, 128, 63, 0, 0, 0, 64] },
  });
  core.session(one(js('Elu', 'x', 'y', { domain: 'com.ms.internal.nhwc' })));
  assert.deepEqual(kept(), { format: 'NHWC' });
  core.session(one(js('Elu', 'x', 'y')));
  assert.deepEqual(kept(), {});
});

test('buffers that the page registers', async () => {
  const { core, backend } = await start();
  const { module } = core;
  const session = core.session(one(js('Elu', 'x', 'y', { attributes: { alpha: { f: 1 } } })));
  const run = core.begin(session);
  const id = module.jsepRegisterBuffer(session, 0, bytesOf(f32(5, 6, 0, 0)), 8);
  core.feedDevice(run, 0, DTYPE.float32, [2], id);
  module.jsepOnRunStart(session);
  await core.execute(run);
  const y = new Float32Array(module.jsepGetBuffer(core.output(run, 0).data).buffer);
  assert.deepEqual(Array.from(y.subarray(0, 2)), [5, 6]);
  module._ort_run_end(run);
  assert.deepEqual([...backend.buffers.keys()], [id], "the page's buffer stays the page's");
  assert.ok(backend.calls.includes(`onRunStart ${session}`));
  assert.equal(module.jsepUnregisterBuffers, undefined, 'it has none');
});

test('failures are errors of their nodes, and the session goes on', async () => {
  const it = await start();
  const { core, backend } = it;
  const failing = async (op, code, words, source = one(js(op, 'x', 'y'))) => {
    const fields = await fails(() => run(it, core.session(source), f32(1)), code, words);
    assert.deepEqual([fields.op_type, fields.provider], [op, 'device']);
    assert.deepEqual([...backend.buffers.keys()], []);
  };
  await failing('Says1', FAIL, 'failed and did not say why');
  await failing('Throws', FAIL, 'this kernel cannot');
  await failing('Sing', FAIL, 'kernel not found: Sing');
  await failing('Early', INVALID_ARGUMENT, 'the kernel has no output 7');
  const untyped = planOf({ inputs: ['x:float32'], outputs: ['y'], nodes: [js('Elu', 'x', 'y')] });
  await failing('Elu', INVALID_ARGUMENT, 'the plan does not say of what type output 0 is', untyped);
  assert.deepEqual(await run(it, core.session(one(js('Elu', 'x', 'y'))), f32(1)), [[1], [1]]);
});

test('parts of buffers are refused, whole ones are copied', async () => {
  const it = await start();
  const body = {
    inputs: ['v:float32[1]'],
    outputs: ['w:float32[1]'],
    nodes: [js('Elu', 'v', 'w', { attributes: { alpha: { f: 1 } } })],
  };
  const scan = (rows) =>
    planOf({
      inputs: [`x:float32[${rows},1]`],
      outputs: ['y:float32'],
      nodes: [cpu('Scan', 'x', 'y', { attributes: { num_scan_inputs: { i: 1 } }, subgraphs: { body } })],
    });
  const x = (...values) => ({ data: f32(...values), dims: [values.length, 1] });
  assert.deepEqual(await run(it, it.core.session(scan(1)), x(3)), [[3], [1, 1]]);
  assert.ok(it.backend.calls.includes('copy gpu 4'));
  await fails(() => run(it, it.core.session(scan(2)), x(3, 4)), FAIL, 'copies whole buffers', 'Loop and Scan');
});

test('what is no function is named', async () => {
  const { module } = await Core.load();
  const f = () => 0;
  assert.throws(() => module.jsepInit({}, f, f, f, f, f, f), /jsepInit: run is not a function/);
  assert.throws(() => module.jsepInit({}, { alloc: f }), /jsepInit: free is not a function/);
  assert.throws(() => module.jsepInit({}), /jsepInit: alloc is not a function/);
});
