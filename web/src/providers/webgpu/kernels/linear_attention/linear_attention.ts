// LinearAttention: a recurrent state of keys by values instead of a cache. A thread has a column of the state, and
// walks from token to token.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { bindingCount, FLOATS, linearMain, linearWorkgroups, load, stored } from '../../wgsl';

interface RecurrenceSpec extends Spec {
  readonly delta: boolean;
  /** The factor of a state before each token: a number per head, one per element of a key, or 1. */
  readonly decay: 'none' | 'head' | 'element';
  readonly past: StorageType | undefined;
  /** True if the past is in the state already. */
  readonly filled?: boolean;
  readonly present: StorageType | undefined;
  /** Query heads that share a state. */
  readonly shared: number;
  readonly type: StorageType;
}

// state is [batch, heads, keySize, valueSize] in f32; past and present have the same order, slot for slot.
const RECURRENCE: Shader<RecurrenceSpec> = {
  name: 'linear_attention__column',
  wgsl({ delta, decay, past, filled, present, shared, type }) {
    const each = Array.from({ length: shared }, (_, j) => j);
    const element = (name: string, at: string) => load(type, 1, `${name}[${at}]`);
    const kept = { none: '', head: ' * gate', element: ` * exp(${element('decay', 'own + k')})` }[decay];
    return linearMain(`  let column = i % u.value_size;
  let head = i / u.value_size % u.heads;
  let batch = i / (u.value_size * u.heads);
  let base = (i / u.value_size) * u.key_size * u.value_size + column;
${
  filled
    ? ''
    : `  for (var k = 0u; k < u.key_size; k++) {
    let at = base + k * u.value_size;
    state[at] = ${past ? load(past, 1, 'past[u.past_start + at]') : '0.0'};
  }`
}
  for (var t = 0u; t < u.tokens; t++) {
    let row = batch * u.tokens + t;
    let own = (row * u.heads + head) * u.key_size;
${decay === 'head' ? `    let gate = exp(${element('decay', 'row * u.heads + head')});` : ''}
    var change = ${element('value', '(row * u.heads + head) * u.value_size + column')};
${
  delta
    ? `    var known = 0.0;
    for (var k = 0u; k < u.key_size; k++) {
      known += state[base + k * u.value_size]${kept} * ${element('key', 'own + k')}; }
    change = ${element('beta', 'row * u.rates + head % u.rates')} * (change - known);`
    : ''
}
    let asked = (row * u.query_heads + head * ${shared}u / u.repeats) * u.key_size;
${each.map((j) => `    var sum${j} = 0.0;`).join('\n')}
    for (var k = 0u; k < u.key_size; k++) {
      let at = base + k * u.value_size;
      let next = state[at]${kept} + ${element('key', 'own + k')} * change;
      state[at] = next;
${each.map((j) => `      sum${j} += ${element('query', `asked + ${j}u * u.key_size + k`)} * next;`).join('\n')}
    }
    let to = ((row * u.heads + head) * ${shared}u) * u.value_size + column;
${each.map((j) => `    y[to + ${j}u * u.value_size] = ${stored(type, 1, `u.scale * sum${j}`)};`).join('\n')}
${
  present
    ? `    if (t + u.slots >= u.tokens) {
      let slot = t + u.slots - u.tokens;
      for (var k = 0u; k < u.key_size; k++) {
        present[slot * u.state_size + base + k * u.value_size] = ${stored(
          present,
          1,
          'state[base + k * u.value_size]',
        )}; }
    }`
    : ''
}
  }
${
  present
    ? `  // Slots before the first token: zeros, but without any token the last one is the past state.
  for (var slot = 0u; slot + u.tokens < u.slots; slot++) {
    for (var k = 0u; k < u.key_size; k++) {
      present[slot * u.state_size + base + k * u.value_size] = ${stored(
        present,
        1,
        'select(0.0, state[base + k * u.value_size], slot + 1u == u.slots)',
      )}; }
  }`
    : ''
}`);
  },
};

const FILL: Shader<{ readonly type: StorageType }> = {
  name: 'linear_attention__fill',
  wgsl: ({ type }) => linearMain(`  state[i] = ${load(type, 1, 'past[u.past_start + i]')};`),
};

const RULES = ['linear', 'gated', 'delta', 'gated_delta'] as const;

interface LinearAttributes {
  readonly queryHeads: number;
  readonly heads: number;
  readonly scale: number;
  readonly rule: string;
  readonly window: number;
}

/** query, key, value, past_state, decay, beta */
function resolve(ctx: Context, { queryHeads, heads, scale, rule, window }: LinearAttributes): void {
  const [query, key, value] = [0, 1, 2].map((i) => ctx.input(i));
  const past = ctx.inputs[3];
  const gated = rule === 'gated' || rule === 'gated_delta';
  const delta = rule === 'delta' || rule === 'gated_delta';
  const [batch, tokens] = query.dims;
  const keySize = query.dims[2] / queryHeads;
  const valueSize = value.dims[2] / heads;
  const outer = Math.max(queryHeads, heads);
  const fits =
    (RULES as readonly string[]).includes(rule) &&
    outer % queryHeads === 0 &&
    outer % heads === 0 &&
    Number.isInteger(valueSize) &&
    key.dims.join() === [batch, tokens, heads * keySize].join() &&
    value.dims.slice(0, 2).join() === [batch, tokens].join();
  if (!fits)
    throw new KernelError(
      `LinearAttention (${rule}) of queries [${query.dims}] in ${queryHeads} heads, ` +
        `keys [${key.dims}] and values [${value.dims}] in ${heads}`,
    );
  const decay = gated ? ctx.input(4) : undefined;
  const beta = delta ? ctx.input(5) : undefined;
  const own = [batch, heads, keySize, valueSize];
  const dims = window > 0 ? [window, ...own] : own;
  if (past && past.dims.join() !== dims.join())
    throw new KernelError(`LinearAttention: a past state [${past.dims}] that should be [${dims}]`);
  const y = ctx.output(0, [batch, tokens, outer * valueSize]);
  // Of the past's type, if there is one.
  const present = ctx.wants(1) ? ctx.output(1, dims, past?.dtype ?? query.dtype) : undefined;
  const size = batch * heads * keySize * valueSize;
  const slots = Math.max(1, window);
  const past_start = (slots - 1) * size;
  const state = ctx.temp(own, DType.float32);
  // With all optional inputs it binds more tensors than every device allows.
  const bound = [query, key, value, past, decay, beta, y, state, present].filter((tensor) => tensor !== undefined);
  const filled = past && bindingCount(bound, ctx.device) > ctx.device.maxStorageBuffersPerStage;
  if (filled) {
    ctx.dispatch({
      shader: FILL,
      spec: { type: past.storage },
      inputs: { past },
      outputs: { state },
      uniforms: { count: size, past_start },
      workgroups: linearWorkgroups(size, ctx.device),
    });
  }
  ctx.dispatch({
    shader: RECURRENCE,
    spec: {
      delta,
      decay: !decay ? 'none' : decay.dims[2] === heads ? 'head' : 'element',
      past: filled ? undefined : past?.storage,
      ...(filled && { filled }),
      present: present?.storage,
      shared: Math.max(1, queryHeads / heads),
      type: query.storage,
    },
    inputs: { query, key, value, ...(past && !filled && { past }), ...(decay && { decay }), ...(beta && { beta }) },
    outputs: { y, state, ...(present && { present }) },
    uniforms: {
      count: batch * heads * valueSize,
      value_size: valueSize,
      heads,
      key_size: keySize,
      tokens,
      query_heads: queryHeads,
      repeats: Math.max(1, heads / queryHeads),
      past_start,
      slots,
      state_size: size,
      rates: beta ? beta.dims[2] : 1,
      scale: scale || 1 / Math.sqrt(keySize),
    },
    f32: ['scale'],
    workgroups: linearWorkgroups(batch * heads * valueSize, ctx.device),
  });
}

const linearAttention: Kernel<LinearAttributes> = {
  op: 'LinearAttention',
  types: [FLOATS],
  attributes: (given) => ({
    queryHeads: given.integer('q_num_heads', 1),
    heads: given.integer('kv_num_heads', 1),
    scale: given.number('scale', 0),
    rule: given.text('update_rule', 'gated_delta'),
    window: given.integer('state_window', 0),
  }),
  resolve,
};

export default [linearAttention];
