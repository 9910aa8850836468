// Plans with nodes on two devices.
'use strict';
const assert = require('node:assert/strict');
const { test: plainTest } = require('node:test');
const { bool, bytesOf, f32, fails, i64, noBuffersLeft, runOnce, start } = require('./harness.cjs');
const { js, other, PLACE, planOf } = require('./plan_of.cjs');

const NOT_IMPLEMENTED = 4;
let it;
const test = (name, body) =>
  plainTest(name, async () => {
    it = await start();
    await body();
  });

test('a graph on two devices: tensors go from one to the other through the heap', async () => {
  const { core, provider } = it;
  const plan = planOf({
    inputs: ['x:float32[-1]'],
    outputs: ['c', 'd'],
    weights: { w: { dtype: 'float32', dims: [3], size: 12, places: PLACE.other } },
    nodes: [js('Neg', 'x', 'a'), other('Add', ['a', 'w'], 'b'), js('Add', ['b', 'a'], 'c'), other('Neg', 'b', 'd')],
  });
  provider.buffers.set(77, bytesOf(f32(10, 20, 30, 0)));
  provider.owners.set(77, 2);
  const session = core.session(plan, [], undefined, [[0, 77]]);
  for (const asynchronous of [true, false]) {
    provider.async = asynchronous;
    provider.log.length = 0;
    const { values } = await runOnce(it, session, [f32(1, 2, 3)], 2);
    assert.deepEqual(values, [
      [8, 16, 24],
      [-9, -18, -27],
    ]);
    // a, b, and the output of the second device.
    assert.equal(provider.count('copyAsync'), 3);
  }
  noBuffersLeft(provider, [77]);
});

test('an integer that one device keeps as it is', async () => {
  const wide = { inputs: ['x:int64[-1]'], outputs: ['x'], nodes: [other('Nothing', 'x', 'unread')] };
  const { values } = await runOnce(it, it.core.session(planOf(wide)), [i64(1, 2147483648)]);
  assert.deepEqual(values, [[1, 2147483648]]);
  assert.equal(it.provider.log.filter((line) => /^copy \d+ 16$/.test(line)).length, 1);
  const flags = { inputs: ['x:bool[-1]'], outputs: ['y'], nodes: [other('Neg', 'x', 'y')] };
  const fields = await fails(
    () => runOnce(it, it.core.session(planOf(flags)), [bool(true)]),
    NOT_IMPLEMENTED,
    "'x' cannot be on other: bool has no form there",
  );
  assert.equal(fields.provider, 'other');
});
