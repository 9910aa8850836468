// Invalid plans, and the messages of their errors. An accepted plan never makes the core fail.
'use strict';
const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Core } = require('./core.cjs');
const { fails } = require('./harness.cjs');
const { attributesOf, cpu, js, PLAN_VERSION, planBytes, planObject, planOf } = require('./plan_of.cjs');

const INVALID_GRAPH = 3;
const good = () =>
  planObject({
    inputs: ['x:float32[2]'],
    outputs: ['z'],
    nodes: [cpu('Relu', 'x', 'y'), cpu('Relu', 'y', 'z')],
    weights: { w: { dtype: 'float32', dims: [2], size: 8 } },
  });
const body = (inputs, outputs, nodes) => ({ inputs, outputs, nodes });

const BROKEN = {
  'another version': [(p) => (p.version = 99), 'version 99', `reads version ${PLAN_VERSION}`],
  'no graph': [(p) => (p.graphs = []), 'no graph'],
  'an input index out of range': [(p) => (p.graphs[0].nodes[0].inputs = [77]), 'Relu', 'names value 77'],
  'a negative output index': [(p) => (p.graphs[0].nodes[0].outputs = [-2]), 'Relu', 'names value -2'],
  'a graph output nobody makes': [(p) => (p.graphs[0].nodes = []), 'reads value', 'before it is made'],
  'nodes out of order': [(p) => p.graphs[0].nodes.reverse(), 'before it is made'],
  'a value made twice': [(p) => (p.graphs[0].nodes[1].outputs = p.graphs[0].nodes[0].outputs), 'a second time'],
  'a graph of no node': [(p) => p.graphs.push({ name: 'lost' }), 'graph 1 belongs to no node'],
  'a weight outside the blob': [(p) => (p.weights[0].offset = 64), 'lies outside'],
  'a weight at an offset that wraps': [(p) => (p.weights[0].offset = -8n), 'lies outside'],
  'a weight of the wrong size': [(p) => (p.weights[0].size = 12), "weight 'w'", 'float32[2] has 12 bytes'],
  'a weight of another dtype': [(p) => (p.weights[0].dtype = 6), "weight 'w' is int32, its value float32"],
  'a weight of no value': [(p) => (p.weights[0].value = 50), 'names value 50'],
  'a weight of a shape that overflows': [(p) => (p.weights[0].dims = [0xffffffff, 0xffffffff, 4]), "weight 'w'"],
  'a float64 weight for the GPU': [
    (p) => Object.assign(p.weights[0], { dtype: 11, size: 16, places: 2 }) && (p.values[0].dtype = 0),
    'float64 has no form there',
  ],
  'an unknown provider': [(p) => (p.graphs[0].nodes[0].provider = 9), 'on provider 9 of 3'],
  'no provider': [(p) => (p.providers = []), 'no providers'],
  'a form that nobody knows': [(p) => (p.providers[1].forms = [{ dtype: 1, stored: 7 }]), 'an unknown form'],
  'a form of strings': [(p) => (p.providers[1].forms = [{ dtype: 8, stored: 8 }]), 'an unknown form'],
  'a weight that is nowhere': [(p) => (p.weights[0].places = 0), 'the places 0'],
  'a weight on two devices': [(p) => (p.weights[0].places = 6), 'the places 6'],
  'a weight of an unknown provider': [(p) => (p.weights[0].places = 8), 'the places 8'],
  'a feed of an unknown provider': [(p) => (p.input_placement = [{ places: 16 }]), 'the places 16'],
  'an unknown use': [(p) => (p.graphs[0].nodes[0].uses = [7]), 'unknown use'],
  'a dtype from the future': [(p) => (p.values[0].dtype = 200), 'unknown type'],
  'placements of other inputs': [(p) => (p.input_placement = []), 'input_placement'],
  'an attribute tensor that is cut short': [
    (p) =>
      (p.graphs[0].nodes[0].attributes = attributesOf({ value: { tensor: { dtype: 1, dims: [1000], data: [1, 2] } } })),
    "attribute 'value'",
    'has 2 bytes',
  ],
};

const FLOW = {
  'an If without else_branch': [
    cpu('If', 'x', 'y', { subgraphs: { then_branch: body([], ['x'], []) } }),
    "no subgraph 'else_branch'",
  ],
  'an If whose branch gives too little': [
    cpu('If', 'x', 'y', { subgraphs: { then_branch: body([], [], []), else_branch: body([], ['x'], []) } }),
    'then_branch has 0 inputs and 0 outputs, not 0 and 1',
  ],
  'a Loop body without condition': [
    cpu('Loop', ['', '', 'x'], 'y', { subgraphs: { body: body(['i'], ['i'], []) } }),
    'body has 1 inputs',
  ],
  'a value read out of its scope': [
    cpu('If', 'x', 'y', {
      subgraphs: { then_branch: body([], ['t'], [cpu('Relu', 'x', 't')]), else_branch: body([], ['t'], []) },
    }),
    "reads value 1 't'",
    'out of its scope',
  ],
};

test('refused plans', async (t) => {
  const core = await Core.load();
  const create = (bytes) => core.check(core.module._ort_session_create(core.copyIn(bytes), bytes.length));
  assert.ok(create(planBytes(good())), 'the plan that is broken below is fine by itself');
  for (const [name, [damage, ...words]] of Object.entries(BROKEN)) {
    await t.test(name, () => {
      const plan = good();
      damage(plan);
      return fails(() => create(planBytes(plan)), INVALID_GRAPH, ...words);
    });
  }
  for (const [name, [node, ...words]] of Object.entries(FLOW)) {
    await t.test(name, () =>
      fails(() => create(planOf({ inputs: ['x:float32'], outputs: ['y'], nodes: [node] })), INVALID_GRAPH, ...words),
    );
  }
  await t.test('two nodes that share a subgraph', () => {
    const branch = { then_branch: body([], ['x'], []), else_branch: body([], ['x'], []) };
    const plan = planObject({
      inputs: ['x'],
      outputs: ['z'],
      nodes: [cpu('If', 'x', 'y', { subgraphs: branch }), cpu('If', 'y', 'z', { subgraphs: branch })],
    });
    plan.graphs[0].nodes[1].subgraphs = plan.graphs[0].nodes[0].subgraphs;
    plan.graphs.length = 3;
    return fails(() => create(planBytes(plan)), INVALID_GRAPH, 'used twice');
  });
  await t.test('no plan at all', () => fails(() => create(new Uint8Array(40)), INVALID_GRAPH, 'not a plan'));
  await t.test('an empty one', () => fails(() => create(new Uint8Array(0)), INVALID_GRAPH, 'not a plan'));
});

test('damaged bytes are refused or harmless', async () => {
  const core = await Core.load();
  const bytes = planOf({
    inputs: ['x:bool[1]'],
    outputs: ['y'],
    nodes: [
      cpu('If', 'x', 'y', {
        subgraphs: {
          then_branch: body([], ['t'], [cpu('Relu', 'w', 't', { attributes: { a: { ints: [1, 2] } } })]),
          else_branch: body([], ['w'], []),
        },
      }),
    ],
    weights: { w: { dtype: 'float32', dims: [2], size: 8 } },
  });
  let refused = 0;
  for (let at = 0; at < bytes.length; at++)
    for (const value of [0, 0xff, bytes[at] ^ 4]) {
      const damaged = bytes.slice();
      damaged[at] = value;
      const session = core.module._ort_session_create(core.copyIn(damaged), damaged.length);
      if (!session) refused++;
      else core.module._ort_session_prepare(session);
      core.module._ort_session_release(session);
    }
  for (let size = 0; size < bytes.length; size += 3)
    refused += core.module._ort_session_create(core.copyIn(bytes.slice(0, size)), size) === 0;
  assert.ok(refused > bytes.length / 3, `only ${refused} damaged plans were refused`);
});

test('kernels that do not exist', async () => {
  const core = await Core.load();
  const plan = planOf({
    inputs: ['x:float32[2]'],
    outputs: ['y'],
    nodes: [cpu('Conjure', 'x', 'y', { name: 'n', origin: 'model_node', domain: 'my.domain' })],
  });
  const fields = await fails(() => core.session(plan), 4, 'my.domain::Conjure', 'float32');
  assert.deepEqual(
    [fields.node, fields.op_type, fields.domain, fields.provider],
    ['model_node', 'Conjure', 'my.domain', 'wasm'],
  );
  await fails(
    () => core.session(planOf({ inputs: ['x:string[2]'], outputs: ['y'], nodes: [cpu('Relu', 'x', 'y')] })),
    4,
    'takes no string as input 0',
    'float32',
  );
  await fails(
    () => core.session(planOf({ inputs: ['x'], outputs: ['y'], nodes: [js('Relu', 'x', 'y')] })),
    INVALID_GRAPH,
    'jsepInit',
  );
});
