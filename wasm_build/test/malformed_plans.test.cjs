// Nodes of plans that the compiler did not write: without inputs that their kernels read, with operands of other types,
// or with inputs of which only the shape is present. They are errors, and the core continues.
'use strict';
const assert = require('node:assert/strict');
const { test, before } = require('node:test');
const { f32, fails, i64, runOnce, start } = require('./harness.cjs');
const { cpu, planOf } = require('./plan_of.cjs');

const INVALID_GRAPH = 3;
let it;
before(async () => {
  it = await start();
});

test('no kernel reads an input that is not there', async () => {
  const kernels = JSON.parse(it.core.module.UTF8ToString(it.core.module._ort_kernel_manifest()));
  let lacking = 0;
  for (const { domain, op_type } of kernels) {
    const nodes = [cpu(op_type, ['', '', '', '', '', '', '', ''], 'y', { domain })];
    try {
      await runOnce(it, it.core.session(planOf({ outputs: ['y'], nodes })), []);
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) throw error;
      if (/lacks an input/.test(error.message)) lacking++;
    }
  }
  assert.ok(lacking > kernels.length / 3, `only ${lacking} of ${kernels.length} said so`);
  const again = it.core.session(planOf({ inputs: ['x:float32[2]'], outputs: ['y'], nodes: [cpu('Relu', 'x', 'y')] }));
  assert.deepEqual((await runOnce(it, again, [f32(-1, 2)])).values, [[0, 2]]);
});

test('operands of one type', async () => {
  const bytes = { data: Uint8Array.of(1, 2), dtype: 2 };
  for (const [node, ...feeds] of [
    [cpu('Add', ['a', 'b'], 'y'), f32(1, 2), bytes],
    [cpu('Equal', ['a', 'b'], 'y'), bytes, i64(1, 2)],
    [cpu('Concat', ['a', 'b'], 'y', { attributes: { axis: { i: 0 } } }), bytes, f32(1, 2)],
    [cpu('Where', ['c', 'a', 'b'], 'y'), f32(1, 2), bytes, { data: Uint8Array.of(1, 0), dtype: 9 }],
    [cpu('ScatterElements', ['a', 'c', 'b'], 'y'), bytes, f32(1, 2), i64(0, 1)],
  ]) {
    const inputs = feeds.map((_, i) => 'abc'[i]);
    const session = it.core.session(planOf({ inputs, outputs: ['y'], nodes: [node] }));
    await fails(() => runOnce(it, session, feeds), INVALID_GRAPH, 'is of', 'but input');
  }
});

test('contents of which only the shape is there', async () => {
  const plan = (op_type) =>
    planOf({ inputs: ['x:float32[2]'], outputs: ['y'], nodes: [cpu(op_type, 'x', 'y', { uses: ['shape'] })] });
  await fails(() => it.core.session(plan('Relu')), INVALID_GRAPH, 'reads more than the shape of input 0');
  assert.deepEqual((await runOnce(it, it.core.session(plan('Shape')), [f32(-1, 2)])).values, [[2]]);
});

test('an If without a condition', () => {
  const subgraphs = { then_branch: { outputs: ['x'] }, else_branch: { outputs: ['x'] } };
  const bytes = planOf({ inputs: ['x'], outputs: ['y'], nodes: [cpu('If', '', 'y', { subgraphs })] });
  return fails(() => it.core.session(bytes), INVALID_GRAPH, 'lacks an input');
});
