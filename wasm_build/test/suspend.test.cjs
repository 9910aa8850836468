// jsepCopyAsync suspends the core in the middle of a run: calls that are allowed meanwhile, and calls that are not.
'use strict';
const assert = require('node:assert/strict');
const { test: plainTest } = require('node:test');
const { DTYPE } = require('./core.cjs');
const { bytesOf, elements, f32, fails, noBuffersLeft, runOnce, start } = require('./harness.cjs');
const { cpu, js, planOf } = require('./plan_of.cjs');

const INVALID_ARGUMENT = 2,
  CANCELLED = 10;
const plan = planOf({
  inputs: ['x:float32[-1]'],
  outputs: ['c'],
  nodes: [js('Neg', 'x', 'a'), cpu('Relu', 'a', 'b'), js('Neg', 'b', 'c')],
});
let it;
const test = (name, body) =>
  plainTest(name, async (t) => {
    it = await start();
    await body(t);
  });

/** Starts a run that stays suspended until the gate is opened. */
function suspended(session, ...values) {
  const { core, provider } = it;
  let open;
  provider.beforeCopy = () => new Promise((resolve, reject) => (open = { gate: resolve, fail: reject }));
  const run = core.begin(session);
  core.feed(run, 0, DTYPE.float32, [values.length], bytesOf(f32(...values)));
  const done = core.execute(run);
  assert.ok(core.module.Asyncify.currData, 'the run is suspended');
  provider.beforeCopy = undefined;
  return { run, done, open: () => open.gate(), fail: (error) => open.fail(error) };
}

test('bytes that are there already do not suspend', async () => {
  it.provider.async = false;
  const { core } = it;
  const run = core.begin(core.session(plan));
  core.feed(run, 0, DTYPE.float32, [1], bytesOf(f32(-3)));
  assert.equal(core.module._ort_run_execute(run), 1);
  assert.equal(core.module.Asyncify.currData, null);
  assert.deepEqual(elements(core.output(run, 0), it.provider), [-3]);
});

test('another run cannot execute meanwhile, but may be prepared', async () => {
  const { core, provider } = it;
  const session = core.session(plan);
  const first = suspended(session, -1, 2);
  const second = core.begin(session);
  core.feed(second, 0, DTYPE.float32, [3], bytesOf(f32(-7, 8, -9)));
  await fails(
    () => core.check(core.module._ort_run_execute(second)),
    INVALID_ARGUMENT,
    `run ${first.run} is under way`,
    'one run at a time',
  );
  // The heap is used as usual: sessions are made and released, without an effect on the suspended frames.
  for (let i = 0; i < 50; i++) core.module._ort_session_release(core.session(plan));
  first.open();
  await first.done;
  assert.deepEqual(elements(core.output(first.run, 0), provider), [-1, -0]);
  await core.execute(second);
  assert.deepEqual(elements(core.output(second, 0), provider), [-7, -0, -9]);
  core.module._ort_run_end(first.run);
  core.module._ort_run_end(second);
  noBuffersLeft(provider);
});

test('runs queued one behind the other keep their values apart', async () => {
  const { core, provider } = it;
  const session = core.session(plan);
  const runs = [1, 2, 3].map((n) => {
    const run = core.begin(session);
    core.feed(run, 0, DTYPE.float32, [n], bytesOf(Float32Array.from({ length: n }, () => -n)));
    return run;
  });
  for (const run of runs) await core.execute(run);
  assert.deepEqual(
    runs.map((run) => elements(core.output(run, 0), provider)),
    [[-1], [-2, -2], [-3, -3, -3]],
  );
  runs.forEach((run) => core.module._ort_run_end(run));
  noBuffersLeft(provider);
});

test('a cancelled run stops at its next node', async () => {
  const { core, provider } = it;
  const run = suspended(core.session(plan), -1);
  core.module._ort_run_cancel(run.run);
  run.open();
  await fails(() => run.done, CANCELLED, 'cancelled');
  assert.equal(provider.calls.length, 1);
  core.module._ort_run_end(run.run);
  noBuffersLeft(provider);
});

test('a loop without end on the CPU can be cancelled from outside', async () => {
  const { core, provider } = it;
  const endless = { inputs: ['i:int64', 'go:bool', 'v'], outputs: ['go', 'w'], nodes: [cpu('Relu', 'v', 'w')] };
  const empty = { inputs: ['i:int64', 'go:bool', 'v'], outputs: ['go', 'v'], nodes: [] };
  for (const body of [endless, empty]) {
    const session = core.session(
      planOf({
        inputs: ['x:float32[1]'],
        outputs: ['y'],
        nodes: [cpu('Loop', ['', '', 'x'], 'y', { subgraphs: { body } })],
      }),
    );
    const run = core.begin(session);
    core.feed(run, 0, DTYPE.float32, [1], bytesOf(f32(1)));
    setTimeout(() => core.module._ort_run_cancel(run), 50);
    await fails(() => core.execute(run), CANCELLED, 'cancelled');
    core.module._ort_run_end(run);
  }
  noBuffersLeft(provider);
});

test('a run that is ended while suspended is freed when it wakes', async () => {
  const { core, provider } = it;
  const run = suspended(core.session(plan), -1);
  core.module._ort_run_end(run.run);
  run.open();
  await fails(() => run.done, CANCELLED);
  noBuffersLeft(provider);
});

test('a session released while its run is suspended', async () => {
  const { core, provider } = it;
  const session = core.session(plan);
  const run = suspended(session, -4);
  core.module._ort_session_release(session);
  run.open();
  await run.done;
  assert.deepEqual(elements(core.output(run.run, 0), provider), [-4]);
  core.module._ort_run_end(run.run);
  noBuffersLeft(provider);
  assert.equal(provider.kernels.size, 0);
});

test('a download that fails', async () => {
  const { core, provider } = it;
  const session = core.session(plan);
  const run = suspended(session, -1);
  run.fail(new Error('the device is lost'));
  const fields = await fails(() => run.done, 1, 'the device is lost');
  assert.equal(fields.op_type, 'Relu');
  core.module._ort_run_end(run.run);
  noBuffersLeft(provider);
  assert.deepEqual((await runOnce(it, session, [f32(-5)])).values, [[-5]]);
});
