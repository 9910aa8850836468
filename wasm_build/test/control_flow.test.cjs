// If, Loop and Scan on both providers.
'use strict';
const assert = require('node:assert/strict');
const { test: plainTest } = require('node:test');
const { bool, bytesOf, elements, f32, fails, i64, noBuffersLeft, runOnce, start } = require('./harness.cjs');
const { cpu, js, planOf } = require('./plan_of.cjs');

const RUNTIME = 6;
let it;
const test = (name, body) =>
  plainTest(name, async (t) => {
    it = await start();
    await body(t);
  });

const body = (inputs, outputs, nodes) => ({ inputs, outputs, nodes });

test('If takes a branch, and captures what is around it', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['c:bool', 'x:float32[-1]'],
      outputs: ['y'],
      nodes: [
        js('Neg', 'x', 'a'),
        cpu('If', 'c', 'y', {
          subgraphs: { then_branch: body([], ['t'], [js('Neg', 'a', 't')]), else_branch: body([], ['a'], []) },
        }),
      ],
    }),
  );
  assert.deepEqual((await runOnce(it, session, [bool(true), f32(1, 2)])).values, [[1, 2]]);
  assert.deepEqual((await runOnce(it, session, [bool(false), f32(1, 2)])).values, [[-1, -2]]);
  assert.equal(provider.count('copyAsync'), 0);
  noBuffersLeft(provider);
  await fails(() => runOnce(it, session, [bool(false, true), f32(1)]), RUNTIME, "the condition 'c' is bool[2]");
});

test('an If whose condition is on the GPU suspends inside nested graphs', async () => {
  const { core, provider } = it;
  const inner = cpu('If', 'less', 'q', {
    subgraphs: { then_branch: body([], ['r'], [cpu('Relu', 'n', 'r')]), else_branch: body([], ['n'], []) },
  });
  const session = core.session(
    planOf({
      inputs: ['c:bool', 'x:float32[1]', 'y:float32[1]'],
      outputs: ['z'],
      nodes: [
        cpu('If', 'c', 'p', {
          subgraphs: {
            then_branch: body([], ['q'], [js('Less', ['x', 'y'], 'less'), js('Neg', 'x', 'n'), inner]),
            else_branch: body([], ['x'], []),
          },
        }),
        js('Neg', 'p', 'z'),
      ],
    }),
  );
  const run = async (...feeds) => (await runOnce(it, session, feeds)).values[0][0];
  assert.equal(await run(bool(true), f32(3), f32(5)), -0);
  assert.equal(await run(bool(true), f32(5), f32(3)), 5);
  assert.equal(await run(bool(false), f32(5), f32(3)), -5);
  noBuffersLeft(provider);
});

const doubling = body(['i:int64', 'go:bool', 'v'], ['go', 'w', 'v'], [js('Add', ['v', 'v'], 'w')]);

test('Loop: carried values stay on the GPU, scan outputs are stacked', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['m:int64', 'x:float32[-1]'],
      outputs: ['last', 'all'],
      nodes: [cpu('Loop', ['m', '', 'x'], ['last', 'all'], { subgraphs: { body: doubling } })],
    }),
  );
  const { values, dims } = await runOnce(it, session, [i64(3), f32(1, 5)], 2);
  assert.deepEqual(values, [
    [8, 40],
    [1, 5, 2, 10, 4, 20],
  ]);
  assert.deepEqual(dims[1], [3, 2]);
  noBuffersLeft(provider);
  const none = await runOnce(it, session, [i64(0), f32(1, 5)], 2);
  assert.deepEqual([none.values, none.dims[1][0]], [[[1, 5], []], 0]);
});

test('Loop: nobody wants the scan output, so nothing comes down', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['m:int64', 'x:float32[-1]'],
      outputs: ['last'],
      nodes: [cpu('Loop', ['m', '', 'x'], ['last', ''], { subgraphs: { body: doubling } })],
    }),
  );
  assert.deepEqual((await runOnce(it, session, [i64(10), f32(1)])).values, [[1024]]);
  assert.equal(provider.count('copyAsync'), 0);
  assert.ok(Math.max(...provider.log.filter((l) => l.startsWith('alloc')).map((l) => Number(l.split(' ')[1]))) >= 11);
  noBuffersLeft(provider);
});

test('Loop: the condition decides, while the GPU computes it', async () => {
  const { core, provider } = it;
  const until = body(
    ['i:int64', 'go:bool', 'v'],
    ['more', 'w'],
    [js('Add', ['v', 'v'], 'w'), js('Less', ['w', 'limit'], 'more')],
  );
  const session = core.session(
    planOf({
      inputs: ['limit:float32[1]', 'x:float32[1]'],
      outputs: ['y'],
      nodes: [cpu('Loop', ['', '', 'x'], 'y', { subgraphs: { body: until } })],
    }),
  );
  const { values, replayable } = await runOnce(it, session, [f32(100), f32(3)]);
  assert.deepEqual(values, [[192]]);
  assert.equal(replayable, false);
  assert.equal(provider.count('copyAsync'), 6);
  noBuffersLeft(provider);
});

test('Loop: a failure inside says which node, and leaves nothing behind', async () => {
  const { core, provider } = it;
  const broken = body(
    ['i:int64', 'go:bool', 'v'],
    ['go', 'w'],
    [js('Neg', 'v', 'n'), js('Fails', 'n', 'w', { name: 'inside' })],
  );
  const session = core.session(
    planOf({
      inputs: ['m:int64', 'x:float32[1]'],
      outputs: ['y'],
      nodes: [cpu('Loop', ['m', '', 'x'], 'y', { name: 'loop', subgraphs: { body: broken } })],
    }),
  );
  const fields = await fails(() => runOnce(it, session, [i64(3), f32(1)]), RUNTIME, 'the fake kernel fails');
  assert.deepEqual([fields.node, fields.op_type], ['inside', 'Fails']);
  noBuffersLeft(provider);
});

test('Loop: a long one can be cancelled, and one without an end on the GPU does not begin', async () => {
  const { core, provider } = it;
  const long = body(['i:int64', 'go:bool', 'v'], ['go', 'r'], [js('Neg', 'v', 'w'), cpu('Relu', 'w', 'r')]);
  const session = (trips) =>
    core.session(
      planOf({
        inputs: ['m:int64', 'x:float32[1]'],
        outputs: ['y'],
        nodes: [cpu('Loop', [trips, '', 'x'], 'y', { subgraphs: { body: long } })],
      }),
    );
  const feeds = (trips) => [i64(trips), f32(1)];
  await fails(() => runOnce(it, session('m'), feeds(1e9)), RUNTIME, 'would not end');
  await fails(() => runOnce(it, session(''), feeds(1)), RUNTIME, 'would not end');
  const run = core.begin(session('m'));
  core.feed(run, 0, 7, [], bytesOf(i64(1e6)));
  core.feed(run, 1, 1, [1], bytesOf(f32(1)));
  provider.beforeCopy = () => provider.count('copyAsync') === 20 && core.module._ort_run_cancel(run);
  await fails(() => core.execute(run), 10, 'cancelled');
  core.module._ort_run_end(run);
  noBuffersLeft(provider);
});

test('Scan: slices in, sums out, in both directions', async () => {
  const { core, provider } = it;
  const sum = body(['s', 'e'], ['t', 'n'], [js('Add', ['s', 'e'], 't'), js('Neg', 't', 'n')]);
  const scan = (attributes) =>
    core.session(
      planOf({
        inputs: ['s0:float32[2]', 'x:float32[3,2]'],
        outputs: ['last', 'all'],
        nodes: [
          cpu('Scan', ['s0', 'x'], ['last', 'all'], {
            subgraphs: { body: sum },
            attributes: { num_scan_inputs: { i: 1 }, ...attributes },
          }),
        ],
      }),
    );
  const feeds = [f32(0, 0), { data: f32(1, 2, 3, 4, 5, 6), dims: [3, 2] }];
  assert.deepEqual((await runOnce(it, scan({}), feeds, 2)).values, [
    [9, 12],
    [-1, -2, -4, -6, -9, -12],
  ]);
  const reverse = {
    scan_input_directions: { ints: [1] },
    scan_output_directions: { ints: [1] },
    scan_output_axes: { ints: [-1] },
  };
  const { values, dims } = await runOnce(it, scan(reverse), feeds, 2);
  assert.deepEqual(
    [values, dims[1]],
    [
      [
        [9, 12],
        [-9, -8, -5, -12, -10, -6],
      ],
      [2, 3],
    ],
  );
  noBuffersLeft(provider);
});

test('Loop: a trip count alone needs nothing back, and its run can be replayed', async () => {
  const { core, provider } = it;
  const weights = { m: { dtype: 'int64', dims: [], size: 8 } };
  const session = core.session(
    planOf({
      inputs: ['x:float32[3]'],
      outputs: ['last', 'all'],
      weights,
      nodes: [cpu('Loop', ['m', '', 'x'], ['last', 'all'], { subgraphs: { body: doubling } })],
    }),
    [{ index: 0, offset: 0, size: 8 }],
    bytesOf(i64(3)),
  );
  provider.buffers.set(77, bytesOf(f32(1, 2, 3, 0)));
  const run = core.begin(session);
  core.feedDevice(run, 0, 1, [3], 77);
  await core.execute(run);
  const outputs = [0, 1].map((i) => core.output(run, i));
  assert.deepEqual(
    [outputs.map((v) => elements(v, provider)), outputs[1].dims],
    [
      [
        [8, 16, 24],
        [1, 2, 3, 2, 4, 6, 4, 8, 12],
      ],
      [3, 3],
    ],
  );
  assert.equal(core.module._ort_run_replayable(run), 1);
  core.module._ort_run_end(run);
  assert.equal(provider.count('copyAsync'), 0);
  provider.buffers.delete(77);
  // Each row went to its place at once.
  const lines = provider.log.filter((line) => /^(move|run)/.test(line));
  assert.deepEqual(
    lines,
    [1, 2, 3].flatMap((i) => ['run Add', `move ${[77, 1, 3][i - 1]} 2 12`]),
  );
  noBuffersLeft(provider);
});

test('Loop: the condition of the last turn is not read', async () => {
  const { core, provider } = it;
  const until = body(
    ['i:int64', 'go:bool', 'v'],
    ['more', 'w'],
    [js('Add', ['v', 'v'], 'w'), js('Less', ['w', 'limit'], 'more')],
  );
  const session = core.session(
    planOf({
      inputs: ['m:int64', 'limit:float32[1]', 'x:float32[1]'],
      outputs: ['y'],
      nodes: [cpu('Loop', ['m', '', 'x'], 'y', { subgraphs: { body: until } })],
    }),
  );
  assert.deepEqual((await runOnce(it, session, [i64(3), f32(100), f32(3)])).values, [[24]]);
  assert.equal(provider.count('copyAsync'), 2);
  noBuffersLeft(provider);
});

test('Scan: rows stay where their readers are', async () => {
  const { core, provider } = it;
  const scan = (nodes) =>
    core.session(
      planOf({
        inputs: ['x:float32[3,2]'],
        outputs: ['z'],
        nodes: [
          js('Neg', 'x', 'n'),
          cpu('Scan', 'n', 'y', {
            subgraphs: { body: body(['row'], ['out'], nodes) },
            attributes: { num_scan_inputs: { i: 1 } },
          }),
          js('Neg', 'y', 'z'),
        ],
      }),
    );
  const feeds = [{ data: f32(1, 2, 3, 4, 5, 6), dims: [3, 2] }];
  const gpu = await runOnce(it, scan([js('Add', ['row', 'row'], 'out')]), feeds);
  // Not replayable: x was fed to the CPU.
  assert.deepEqual([gpu.values, gpu.dims, gpu.replayable], [[[2, 4, 6, 8, 10, 12]], [[3, 2]], false]);
  assert.deepEqual([provider.count('copyAsync'), provider.count('copy'), provider.count('move')], [0, 1, 6]);
  // Read on the CPU: downloaded once, not row by row; the CPU's results are stacked there.
  assert.deepEqual((await runOnce(it, scan([cpu('Neg', 'row', 'out')]), feeds)).values, [[-1, -2, -3, -4, -5, -6]]);
  assert.deepEqual([provider.count('copyAsync'), provider.count('copy'), provider.count('move')], [1, 3, 6]);
  // Through an inner Scan too.
  const inner = cpu('Scan', 'row', 'out', {
    subgraphs: { body: body(['e'], ['o'], [js('Neg', 'e', 'o')]) },
    attributes: { num_scan_inputs: { i: 1 } },
  });
  assert.deepEqual((await runOnce(it, scan([inner]), feeds)).values, [[-1, -2, -3, -4, -5, -6]]);
  assert.equal(provider.count('copyAsync'), 1);
  noBuffersLeft(provider);
});

test('Scan: nothing to scan, and a single row', async () => {
  const { core, provider } = it;
  const session = core.session(
    planOf({
      inputs: ['s0:float32[2]', 'x:float32[-1,2]'],
      outputs: ['last', 'all'],
      nodes: [
        cpu('Scan', ['s0', 'x'], ['last', 'all'], {
          subgraphs: { body: body(['s', 'e'], ['t', 'n'], [js('Add', ['s', 'e'], 't'), js('Neg', 't', 'n')]) },
          attributes: { num_scan_inputs: { i: 1 } },
        }),
      ],
    }),
  );
  const run = (rows) =>
    runOnce(it, session, [f32(1, 2), { data: f32(3, 4).subarray(0, 2 * rows), dims: [rows, 2] }], 2);
  const none = await run(0);
  assert.deepEqual([none.values, none.dims[1][0]], [[[1, 2], []], 0]);
  assert.deepEqual((await run(1)).values, [
    [4, 6],
    [-4, -6],
  ]);
  noBuffersLeft(provider);
});
