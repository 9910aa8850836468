// Short-hand for plans: values have names, from which everything else follows.
//
//   planOf({
//     inputs: ['x:float32[2,3]'],
//     outputs: ['z'],
//     nodes: [js('Neg', 'x', 'y'), cpu('Relu', ['y'], ['z'], { attributes })],
//   })
'use strict';
const { DTYPE } = require('./core.cjs');
const { encode, schema } = require('./flatbuffer.cjs');

/** Bits of places. */
const PLACE = { heap: 1, device: 2, other: 4 };
const USE = { device: 0, host: 1, shape: 2 };
const TYPE = { i: 1, f: 2, s: 3, ints: 4, floats: 5, strings: 6, tensor: 7 };

const node =
  (provider) =>
  (opType, inputs, outputs, options = {}) => ({
    provider,
    opType,
    inputs: [inputs].flat(),
    outputs: [outputs].flat(),
    ...options,
  });
const cpu = node(0);
const js = node(1);
/** A second device. */
const other = node(2);

/** {axis: {i: 1}} -> the table's bytes. */
function attributesOf(attributes) {
  const items = Object.entries(attributes).map(([name, value]) => ({
    name,
    type: TYPE[Object.keys(value)[0]],
    ...value,
  }));
  return encode('Attributes', { items });
}

class Names {
  constructor() {
    this.values = [];
    this.index = new Map();
  }
  /** 'x', or 'x:float32[2,-1]' with its type; '' is an omitted one. */
  of(text) {
    if (text === '') return -1;
    const [, name, dtype, dims] = /^(\w+)(?::(\w+)(?:\[(.*)\])?)?$/.exec(text);
    if (!this.index.has(name)) {
      this.index.set(name, this.values.length);
      this.values.push({ name });
    }
    const value = this.values[this.index.get(name)];
    if (dtype) value.dtype = DTYPE[dtype];
    if (dims !== undefined)
      Object.assign(value, { rank_known: true, dims: dims === '' ? [] : dims.split(',').map(Number) });
    return this.index.get(name);
  }
}

/** The object of a Plan table. weights: {name: {dtype, dims, size?, strings?, places?}}. */
function planObject({ inputs = [], outputs = [], nodes = [], weights = {} }) {
  const names = new Names();
  const graphs = [];
  let offset = 0;
  const table = Object.entries(weights).map(([name, { dtype, dims, ...rest }]) => {
    const entry = {
      value: names.of(`${name}:${dtype}`),
      dtype: DTYPE[dtype],
      dims,
      offset,
      places: PLACE.heap,
      ...rest,
    };
    offset += Math.ceil((rest.size ?? 0) / 64) * 64;
    return entry;
  });
  const graph = (source) => {
    const index = graphs.push(null) - 1;
    const ids = (source.inputs ?? []).map((name) => names.of(name));
    const made = (source.nodes ?? []).map((n, i) => ({
      name: n.name ?? `${n.opType}_${i}`,
      op_type: n.opType,
      domain: n.domain ?? '',
      provider: n.provider,
      inputs: n.inputs.map((name) => names.of(name)),
      uses: n.uses?.map((use) => USE[use]),
      attributes: n.attributes && attributesOf(n.attributes),
      subgraphs: n.subgraphs && Object.entries(n.subgraphs).map(([name, body]) => ({ name, graph: graph(body) })),
      outputs: n.outputs.map((name) => names.of(name)),
      origin: n.origin,
    }));
    graphs[index] = {
      name: source.name ?? `graph_${index}`,
      inputs: ids,
      outputs: (source.outputs ?? []).map((name) => names.of(name)),
      nodes: made,
    };
    return index;
  };
  graph({ inputs, outputs, nodes });
  return {
    version: PLAN_VERSION,
    producer: 'test',
    providers: structuredClone(PROVIDERS),
    values: names.values,
    graphs,
    weights: table,
    weights_size: offset,
  };
}

const SAME = ['float32', 'float16', 'int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8'];
const WORDS = { int64: 'int32', uint64: 'uint32', bool: 'uint32' };
const forms = (all) => Object.entries(all).map(([dtype, stored]) => ({ dtype: DTYPE[dtype], stored: DTYPE[stored] }));
const same = Object.fromEntries(SAME.map((dtype) => [dtype, dtype]));
/** The providers of all plans; the second device stores integers unchanged. */
const PROVIDERS = [
  { name: 'wasm' },
  { name: 'device', forms: forms({ ...same, ...WORDS }) },
  { name: 'other', forms: forms({ ...same, int64: 'int64' }) },
];

/** PlanVersion of py_ort/schema/plan.fbs. */
const PLAN_VERSION = schema.values.PlanVersion.current;
const planBytes = (object) => encode('Plan', object, 'PORT');
const planOf = (source) => planBytes(planObject(source));

module.exports = { PLAN_VERSION, planOf, planObject, planBytes, attributesOf, cpu, js, other, PLACE, USE };
