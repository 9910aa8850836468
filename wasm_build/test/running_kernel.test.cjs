// A page's question after a call has thrown: the node whose kernel was running.
'use strict';
const assert = require('node:assert/strict');
const { test, beforeEach } = require('node:test');
const { DTYPE } = require('./core.cjs');
const { bytesOf, fails, f32, runOnce, start } = require('./harness.cjs');
const { cpu, js, planOf } = require('./plan_of.cjs');

let it;
beforeEach(async () => {
  it = await start();
});

/** [name, operator]; undefined if no kernel is running. */
function atWork() {
  const { core } = it;
  const at = core.module._ort_kernel_at_work() >>> 0;
  return at ? [0, 4].map((offset) => core.module.UTF8ToString(core.word(at + offset))) : undefined;
}

test('none on the JS provider, and none before and after', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['x:float32[-1]'],
      outputs: ['y'],
      nodes: [cpu('Relu', 'x', 'a'), js('Neg', 'a', 'y')],
    }),
  );
  const seen = [atWork()];
  const run = provider.run.bind(provider);
  provider.run = (...args) => {
    seen.push(atWork());
    return run(...args);
  };
  await runOnce(it, session, [f32(1, 2)]);
  seen.push(atWork());
  assert.deepEqual(seen, [undefined, undefined, undefined]);
});

test('a node on the CPU, after something was thrown through it', () => {
  const { core } = it;
  const axis = { attributes: { axis: { i: 0 } } };
  const session = core.session(
    planOf({ inputs: ['x:float32[-1]'], outputs: ['y'], nodes: [cpu('Concat', ['x', 'x'], 'y', axis)] }),
  );
  const run = core.begin(session);
  core.feed(run, 0, DTYPE.float32, [1024], bytesOf(new Float32Array(1024)));
  const thrown = new Error('as a trap would be');
  core.module.HEAPU8.copyWithin = () => {
    throw thrown;
  };
  assert.throws(() => core.module._ort_run_execute(run), thrown);
  assert.deepEqual(atWork(), ['Concat_0', 'Concat']);
});

test('none after a failure that is told', async () => {
  const { core } = it;
  const session = core.session(
    planOf({ inputs: ['x:float32[-1]', 'z:float32[-1]'], outputs: ['y'], nodes: [cpu('Add', ['x', 'z'], 'y')] }),
  );
  await fails(() => runOnce(it, session, [f32(1, 2), f32(1, 2, 3)]), 6);
  assert.equal(atWork(), undefined);
});
