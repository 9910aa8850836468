// The nodes' times, which a run records on request.
'use strict';
const assert = require('node:assert/strict');
const { test, before } = require('node:test');
const { f32, feedAll, noBuffersLeft, start } = require('./harness.cjs');
const { cpu, js, planOf } = require('./plan_of.cjs');

let it;
before(async () => {
  it = await start();
});

/** [index, began, ready, ended] of each node that ran; `ask`: request the times. */
async function timesOf(session, feeds, ask = true) {
  const { core } = it;
  const run = core.begin(session);
  try {
    feedAll(core, run, feeds);
    if (ask) core.module._ort_run_profile(run);
    const began = performance.now();
    await core.execute(run);
    const ended = performance.now();
    const address = core.module._ort_run_times(run) >>> 0;
    const { buffer } = core.module.HEAPU8;
    const [count] = new Float64Array(buffer, address, 1);
    const numbers = Array.from(new Float64Array(buffer, address + 8, 4 * count));
    return { began, ended, nodes: Array.from({ length: count }, (_, i) => numbers.slice(4 * i, 4 * i + 4)) };
  } finally {
    core.module._ort_run_end(run);
  }
}

const mixed = () =>
  it.core.session(
    planOf({
      inputs: ['x:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Relu', 'x', 'a'), js('Neg', 'a', 'b'), cpu('Relu', 'b', 'y')],
    }),
  );

test('each node in order, on one clock', async () => {
  const session = mixed();
  const { began, ended, nodes } = await timesOf(session, [f32(-1, 2)]);
  assert.deepEqual(
    nodes.map(([index]) => index),
    [0, 1, 2],
  );
  let last = began;
  for (const [, start, ready, end] of nodes) {
    assert.ok(
      last <= start && start <= ready && ready <= end && end <= ended,
      `${last} ${start} ${ready} ${end} ${ended}`,
    );
    last = end;
  }
  noBuffersLeft(it.provider);
});

test('none when nobody asks, and none of the run before', async () => {
  const session = mixed();
  assert.equal((await timesOf(session, [f32(1)], false)).nodes.length, 0);
  assert.equal((await timesOf(session, [f32(1)])).nodes.length, 3);
  assert.equal((await timesOf(session, [f32(1)], false)).nodes.length, 0);
});

test('a failed run has the times up to the failure', async () => {
  const session = it.core.session(
    planOf({
      inputs: ['x:float32[-1]', 'z:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Relu', 'x', 'a'), cpu('Add', ['a', 'z'], 'y')],
    }),
  );
  const { core } = it;
  const run = core.begin(session);
  feedAll(core, run, [f32(1, 2), f32(1, 2, 3)]);
  core.module._ort_run_profile(run);
  await assert.rejects(() => core.execute(run));
  const address = core.module._ort_run_times(run) >>> 0;
  assert.equal(new Float64Array(core.module.HEAPU8.buffer, address, 1)[0], 2);
  core.module._ort_run_end(run);
});
