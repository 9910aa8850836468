// MultiHeadAttention and Attention of com.microsoft: the forms in which onnxruntime's optimizer writes transformers.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { type Lanes, load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { multiply } from '../matmul/product/multiply';
import { appendHeads, attend } from './core';
import { type Heads, headsOf, headsWithin } from './spec';
import { type Mask, maskOf, maskOfKeys } from './mask';
import type { Masking } from './masking';

interface HeadAttributes {
  readonly heads: number;
  readonly scale: number;
  readonly causal: boolean;
  readonly sizes: readonly number[];
  /** The number that a mask adds to the scores of the keys that it masks out. */
  readonly fill: number;
}

const attributes = (a: Attributes): HeadAttributes => ({
  heads: a.integer('num_heads', 0),
  scale: a.number('scale', 0),
  causal: a.integer('unidirectional', 0) !== 0,
  sizes: a.integers('qkv_hidden_sizes'),
  fill: a.number('mask_filter_value', -10000),
});

function maskingOf(
  mask: Tensor | undefined,
  added: Tensor | undefined,
  dims: readonly number[],
  { causal, fill }: HeadAttributes,
  past: number,
): Masking {
  const ofKeys = maskOfKeys(mask, dims);
  const masks: Mask[] = [...ofKeys, ...(added ? [maskOf(added, dims, true)] : [])];
  return {
    masks,
    fill: ofKeys.length > 0 ? fill : undefined,
    // As natively, one query sees all keys, however many are new.
    causal: causal && dims[2] > 1,
    left: -1,
    right: -1,
    past,
    softcap: 0,
  };
}

interface BiasSpec extends Spec {
  readonly storage: StorageType;
  readonly lanes: Lanes;
}
const PAST_ROWS = 8;
const BEAMS = 9;

const BIAS: Shader<BiasSpec> = {
  name: 'attention_bias__any',
  wgsl: ({ storage, lanes }) =>
    linearMain(`  let d = i % u.size; let head = i / u.size % u.heads;
  let row = i / u.size / u.heads % u.rows; let batch = i / u.size / u.heads / u.rows;
  let value = ${load(storage, lanes, 'x[u.from_3 + batch * u.from_0 + head * u.from_1 + row * u.from_2 + d]')};
  y[i] = ${stored(storage, lanes, `value + ${load(storage, lanes, 'bias[u.start + head * u.size + d]')}`)};`),
};

/** The heads [batch, heads, rows, size] with the part of the bias from `start` added. */
function biased(
  ctx: Context,
  { tensor, strides, offset = 0 }: Heads,
  bias: Tensor | undefined,
  start: number,
  dims: readonly number[],
): Heads {
  if (!bias) return { tensor, strides, offset };
  const [batch, heads, rows, size] = dims;
  const y = ctx.temp([batch, rows, heads * size], tensor.dtype);
  const lanes: Lanes = [...strides, offset, start, size, bias.size, tensor.size].every((step) => step % 4 === 0)
    ? 4
    : 1;
  const from = [...strides, offset].map((step) => step / lanes);
  ctx.dispatch({
    shader: BIAS,
    spec: { storage: tensor.storage, lanes },
    inputs: { x: { tensor, vec: lanes }, bias: { tensor: bias, vec: lanes } },
    outputs: { y: { tensor: y, vec: lanes } },
    uniforms: { count: y.size / lanes, size: size / lanes, heads, rows, start: start / lanes, from },
    workgroups: linearWorkgroups(y.size / lanes, ctx.device),
  });
  return headsWithin(y, size);
}

/** Part `part` of [batch, positions, heads, parts, size]. */
function packedHeads(x: Tensor, part: number): Heads {
  const [, positions, heads, parts, size] = x.dims;
  return {
    tensor: x,
    offset: part * size,
    strides: [positions * heads * parts * size, parts * size, heads * parts * size],
  };
}

/** Of its queries, keys and values: place, size, and whether to add a bias. */
interface Projected {
  readonly q: Heads;
  readonly k: Heads;
  readonly v: Heads;
  readonly size: number;
  readonly valueSize: number;
  readonly incoming: number;
}

function projected(ctx: Context, heads: number): Projected {
  const [query, key, value] = [ctx.input(0), ctx.inputs[1], ctx.inputs[2]];
  const forms = [query, key, value].map((x) => x?.dims.length ?? 0).join();
  const given = `MultiHeadAttention of [${query.dims}], [${key?.dims}] and [${value?.dims}] in ${heads} heads`;
  const size = query.dims.length === 5 ? query.dims[4] : query.dims[2] / heads;
  if (heads <= 0 || !Number.isInteger(size)) throw new KernelError(given);
  if (forms === '5,0,0') {
    return {
      q: packedHeads(query, 0),
      k: packedHeads(query, 1),
      v: packedHeads(query, 2),
      size,
      valueSize: size,
      incoming: query.dims[1],
    };
  }
  const q = headsWithin(query, size);
  if (forms === '3,5,0')
    return { q, k: packedHeads(key!, 0), v: packedHeads(key!, 1), size, valueSize: size, incoming: key!.dims[1] };
  if (forms === '3,4,4')
    return { q, k: headsOf(key!), v: headsOf(value!), size, valueSize: value!.dims[3], incoming: key!.dims[2] };
  const valueSize = (value?.dims[2] ?? 0) / heads;
  if (forms !== '3,3,3' || !Number.isInteger(valueSize) || key!.dims[2] !== query.dims[2]) throw new KernelError(given);
  return { q, k: headsWithin(key!, size), v: headsWithin(value!, valueSize), size, valueSize, incoming: key!.dims[1] };
}

interface BeamSpec extends Spec {
  readonly storage: StorageType;
  readonly lanes: Lanes;
}
const FOLLOW_BEAMS: Shader<BeamSpec> = {
  name: 'attention_beams__any',
  wgsl: () =>
    linearMain(`  let d = i % u.size; let place = i / u.size % u.rows;
  let head = i / u.size / u.rows % u.heads; let batch = i / u.size / u.rows / u.heads;
  var source = batch;
  if (place < u.before) {
    source = batch - batch % u.beams + min(u32(beams[batch * u.positions + place]), u.beams - 1u); }
  y[i] = x[(source * u.heads + head) * u.capacity * u.size + place * u.size + d];`),
};

/**
 * The first `rows` of heads [batch, heads, capacity, size]; the rows of the first `before` positions belong to another
 * beam: [texts, beams, positions].
 */
function followBeams(
  ctx: Context,
  { tensor }: Heads,
  beams: Tensor,
  before: number,
  [batch, heads, rows, size]: readonly number[],
): Heads {
  const [texts, width, positions] = beams.dims;
  if (texts * width !== batch || positions < before) {
    throw new KernelError(
      `MultiHeadAttention: cache_indirection [${beams.dims}] for a batch of ${batch} with ${before} positions`,
    );
  }
  const y = ctx.temp([batch, heads, rows, size], tensor.dtype);
  const lanes: Lanes = size % 4 === 0 ? 4 : 1;
  ctx.dispatch({
    shader: FOLLOW_BEAMS,
    spec: { storage: tensor.storage, lanes },
    inputs: { x: { tensor, vec: lanes }, beams },
    outputs: { y: { tensor: y, vec: lanes } },
    uniforms: {
      count: y.size / lanes,
      size: size / lanes,
      rows,
      heads,
      before,
      beams: width,
      positions,
      capacity: tensor.dims[2],
    },
    workgroups: linearWorkgroups(y.size / lanes, ctx.device),
  });
  return headsOf(y);
}

/**
 * query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value, past_sequence_length,
 * cache_indirection
 */
function resolveMultiHead(ctx: Context, a: HeadAttributes): void {
  const { heads, scale } = a;
  const [bias, mask, added, pastKey, pastValue] = [3, 4, 5, 6, 7].map((i) => ctx.inputs[i]);
  const [batch, queries] = ctx.input(0).dims;
  const { q, k, v, size, valueSize, incoming } = projected(ctx, heads);
  const [rows, width] = [[batch, heads, incoming, size], heads * size];
  // Keys and values that arrive as heads include their biases already.
  const own = ctx.inputs[1]?.dims.length === 4 ? undefined : bias;
  // Without it the whole past is valid, and there are no beams.
  const used = ctx.inputs[PAST_ROWS] && ctx.data(PAST_ROWS)![0];
  const capacity = pastKey?.dims[2] ?? 0;
  const past = used ?? capacity;
  const keys = past + incoming;
  if (used !== undefined && (used < 0 || keys > capacity || pastValue?.dims[2] !== capacity)) {
    throw new KernelError(
      `MultiHeadAttention: ${incoming} rows behind ${used} of caches [${pastKey?.dims}] and [${pastValue?.dims}]`,
    );
  }
  const beams = used !== undefined && queries === 1 ? ctx.inputs[BEAMS] : undefined;
  const y = ctx.output(0, [batch, queries, heads * valueSize]);
  const joined = (i: number, before: Tensor | undefined, part: Heads, each: number): Heads => {
    if (!before && !ctx.wants(i)) return part;
    const [dims, whole] = [
      [batch, heads, keys, each] as const,
      [batch, heads, used === undefined ? keys : capacity, each],
    ];
    const all = appendHeads(
      ctx,
      before,
      part,
      ctx.wants(i) ? ctx.output(i, whole) : ctx.temp(whole, part.tensor.dtype),
      dims,
      0,
      used,
    );
    return beams ? followBeams(ctx, all, beams, past, dims) : all;
  };
  attend(ctx, {
    batch,
    heads,
    kvHeads: heads,
    queries,
    keys,
    size,
    valueSize,
    q: biased(ctx, q, bias, 0, [batch, heads, queries, size]),
    k: joined(1, pastKey, biased(ctx, k, own, width, rows), size),
    v: joined(2, pastValue, biased(ctx, v, own, 2 * width, [batch, heads, incoming, valueSize]), valueSize),
    y: headsWithin(y, valueSize),
    scale: scale || 1 / Math.sqrt(size),
    masking: maskingOf(mask, added, [batch, heads, queries, keys], a, past),
  });
}

/**
 * input [batch, positions, width], weights [width, q + k + v], bias, mask_index, past [2, batch, heads, positions,
 * size], attention_bias
 */
function resolveAttention(ctx: Context, a: HeadAttributes): void {
  const { heads, scale, sizes } = a;
  const [x, weights, bias, past] = [ctx.input(0), ctx.input(1), ctx.inputs[2], ctx.inputs[4]];
  const [batch, queries, width] = x.dims;
  const columns = weights.dims[1];
  const [qSize, kSize, vSize] = sizes.length === 3 ? sizes : [columns / 3, columns / 3, columns / 3];
  const [size, valueSize] = [qSize / heads, vSize / heads];
  if (
    heads <= 0 ||
    !Number.isInteger(size) ||
    !Number.isInteger(valueSize) ||
    qSize !== kSize ||
    qSize + kSize + vSize !== columns
  ) {
    throw new KernelError(
      `Attention of [${x.dims}] with weights [${weights.dims}] in ${heads} heads of ${qSize}, ${kSize} and ${vSize}`,
    );
  }
  const all = ctx.temp([batch, queries, columns], x.dtype);
  multiply(ctx, {
    left: 'matrix',
    a: x,
    b: weights,
    y: all,
    bias,
    m: batch * queries,
    n: columns,
    depth: width,
    taps: 1,
    z: 1,
    lda: width,
    ldb: columns,
    ldy: columns,
  });
  const part = (offset: number, each: number): Heads => ({
    tensor: all,
    offset,
    strides: [queries * columns, each, columns],
  });
  const y = ctx.output(0, [batch, queries, vSize]);
  let [k, v] = [part(qSize, size), part(qSize + kSize, valueSize)];
  const before = past?.dims[3] ?? 0;
  const keys = before + queries;
  if (past || ctx.wants(1)) {
    if (size !== valueSize || (past && past.dims.join() !== [2, batch, heads, before, size].join())) {
      throw new KernelError(`Attention with a past [${past?.dims}] in ${heads} heads of ${size} and ${valueSize}`);
    }
    const dims = [batch, heads, keys, size] as const;
    const present = ctx.wants(1) ? ctx.output(1, [2, ...dims]) : ctx.temp([2, ...dims], x.dtype);
    [k, v] = [k, v].map((heads, i) => appendHeads(ctx, past, heads, present, dims, i));
  }
  attend(ctx, {
    batch,
    heads,
    kvHeads: heads,
    queries,
    keys,
    size,
    valueSize,
    q: part(0, size),
    k,
    v,
    y: headsWithin(y, valueSize),
    scale: scale || 1 / Math.sqrt(size),
    masking: maskingOf(ctx.inputs[3], ctx.inputs[5], [batch, heads, queries, keys], a, before),
  });
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const MASK: readonly DTypeName[] = ['int32'];

export const multiHeadAttention: Kernel<HeadAttributes> = {
  op: 'MultiHeadAttention',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS, FLOATS, FLOATS, FLOATS, MASK, FLOATS, FLOATS, FLOATS, [], ['int32']],
  requires: [{ noOutput: 3, otherwise: 'scores as an output' }],
  attributes,
  resolve: resolveMultiHead,
};
export const microsoftAttention: Kernel<HeadAttributes> = {
  op: 'Attention',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS, FLOATS, FLOATS, MASK, FLOATS, FLOATS],
  requires: [
    { attribute: 'do_rotary', values: [0], otherwise: 'rotation' },
    { attribute: 'past_present_share_buffer', values: [0], otherwise: 'a cache longer than its past' },
  ],
  attributes,
  resolve: resolveAttention,
};
