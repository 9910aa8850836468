// GroupQueryAttention of com.microsoft: attention of decoders, with caches of keys and values, rotation included. If
// the output caches are bound to the buffers of the input caches, only the new rows are written.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Tensor,
} from '../../../../contract/kernel';
import { attend } from './core';
import { type Heads, headsOf, headsWithin } from './spec';
import type { Masking } from './masking';
import { maskOf } from './mask';
import { type AppendedRows, type Rotation, appendToCache } from './kv_append';

interface GroupAttributes {
  readonly heads: number;
  readonly kvHeads: number;
  readonly scale: number;
  readonly softcap: number;
  readonly causal: boolean;
  readonly window: number;
  readonly rotary: boolean;
  readonly interleaved: boolean;
  readonly smooth: boolean;
  /** 1: scores before the softmax are wanted, too; 2: those after it. */
  readonly scores: number;
}

const QUERY = 0;
const PAST_KEY = 3;
const PAST_VALUE = 4;
const LENGTHS = 5;
const TOTAL = 6;

function attributes(a: Attributes): GroupAttributes {
  return {
    heads: a.integer('num_heads', 0),
    kvHeads: a.integer('kv_num_heads', 0),
    scale: a.number('scale', 0),
    softcap: a.number('softcap', 0),
    causal: a.integer('causal', 1) !== 0,
    window: a.integer('local_window_size', -1),
    rotary: a.integer('do_rotary', 0) !== 0,
    interleaved: a.integer('rotary_interleaved', 0) !== 0,
    smooth: a.integer('smooth_softmax', 0) === 1,
    scores: a.integer('qk_output', 0),
  };
}

/**
 * query (or all three in it), key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin,
 * position_ids, attention_bias, head_sink
 */
function resolve(ctx: Context, a: GroupAttributes): void {
  const { heads, kvHeads } = a;
  const query = ctx.input(QUERY);
  const [key, value, pastKey, pastValue] = [1, 2, PAST_KEY, PAST_VALUE].map((i) => ctx.inputs[i]);
  const [cosine, sine, positions, bias, sink] = [7, 8, 9, 10, 11].map((i) => ctx.inputs[i]);
  const lengths = ctx.input(LENGTHS);
  const [batch, count, width] = query.dims;
  const size = width / (key ? heads : heads + 2 * kvHeads);
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads !== 0 || query.dims.length !== 3 || !Number.isInteger(size)) {
    throw new KernelError(`GroupQueryAttention of [${query.dims}] in ${heads} heads of queries and ${kvHeads} of keys`);
  }
  const fitting = [batch, count, kvHeads * size].join();
  if (key && (key.dims.join() !== fitting || value?.dims.join() !== fitting)) {
    throw new KernelError(
      `GroupQueryAttention: keys [${key.dims}] and values [${value?.dims}] ` +
        `for queries [${query.dims}] should be [${fitting}]`,
    );
  }
  if (lengths.size !== batch)
    throw new KernelError(`GroupQueryAttention: seqlens_k of [${lengths.dims}] for a batch of ${batch}`);
  const past = pastKey?.dims[2] ?? 0;
  for (const cache of [pastKey, pastValue]) {
    if (cache && cache.dims.join() !== [batch, kvHeads, past, size].join()) {
      throw new KernelError(
        `GroupQueryAttention: a cache [${cache.dims}] for ${batch} batches of ${kvHeads} heads of ${size}`,
      );
    }
  }
  const kept =
    pastKey !== undefined &&
    pastValue !== undefined &&
    ctx.boundInPlace(1, PAST_KEY) &&
    ctx.boundInPlace(2, PAST_VALUE);
  if (kept && !ctx.holds(TOTAL, ([total]) => total <= past)) {
    throw new KernelError(
      `GroupQueryAttention: total_sequence_length is beyond the ${past} positions of the caches, which are bound as ` +
        `outputs too: take longer ones`,
    );
  }
  const total = kept ? past : ctx.data(TOTAL)![0];
  const capacity = Math.max(total, past);
  const dims = [batch, kvHeads, capacity, size];
  const cacheOf = (i: number, before: Tensor | undefined): Tensor => {
    if (!kept) return ctx.wants(i) ? ctx.output(i, dims) : ctx.temp(dims, query.dtype);
    ctx.view(i, before!, dims);
    return before!;
  };
  const from = (x: Tensor | undefined, column: number): Heads =>
    key ? headsWithin(x!, size) : headsWithin(query, size, column * size);
  const [q, k, v] = [from(query, 0), from(key, heads), from(value, heads + kvHeads)];
  const [keys, values] = [cacheOf(1, pastKey), cacheOf(2, pastValue)];
  const rotated: AppendedRows | undefined = a.rotary
    ? { from: q, heads, rotated: true, cache: false, to: ctx.temp([batch, count, heads * size], query.dtype) }
    : undefined;
  appendToCache(
    ctx,
    { batch, count, size, lengths },
    [
      { from: k, heads: kvHeads, rotated: a.rotary, cache: true, kept, past: pastKey, to: keys },
      { from: v, heads: kvHeads, rotated: false, cache: true, kept, past: pastValue, to: values },
      ...(rotated ? [rotated] : []),
    ],
    a.rotary ? rotationOf(ctx, cosine, sine, positions, count, size, a) : undefined,
  );
  const masking: Masking = {
    masks: bias ? [maskOf(bias, [batch, heads, count, bias.dims[3] ?? total], true)] : [],
    causal: a.causal,
    left: a.window > 0 ? a.window - 1 : -1,
    right: -1,
    past: 0,
    lengths,
    more: 1,
    place: 'appended',
    softcap: a.softcap,
    sink: sink ?? (a.smooth ? 0 : undefined),
  };
  attend(ctx, {
    batch,
    heads,
    kvHeads,
    queries: count,
    keys: total,
    size,
    valueSize: size,
    q: rotated ? headsWithin(rotated.to, size) : q,
    k: headsOf(keys),
    v: headsOf(values),
    y: headsWithin(ctx.output(0, [batch, count, heads * size]), size),
    scale: a.scale || 1 / Math.sqrt(size),
    masking,
  });
}

function rotationOf(
  ctx: Context,
  cosine: Tensor | undefined,
  sine: Tensor | undefined,
  positions: Tensor | undefined,
  count: number,
  size: number,
  { interleaved }: GroupAttributes,
): Rotation {
  if (
    !cosine ||
    !sine ||
    cosine.dims.length !== 2 ||
    cosine.dims.join() !== sine.dims.join() ||
    2 * cosine.dims[1] > size
  ) {
    throw new KernelError(
      `GroupQueryAttention with do_rotary: caches of cosines [${cosine?.dims}] and sines [${sine?.dims}] ` +
        `for heads of ${size}`,
    );
  }
  const [angles] = cosine.dims;
  if (!ctx.holds(TOTAL, ([total]) => total <= angles)) {
    throw new KernelError(
      `GroupQueryAttention: total_sequence_length is beyond the ${angles} positions of the caches of cosines and sines`,
    );
  }
  // If no tokens precede, onnxruntime reads the first position only.
  return {
    cosine,
    sine,
    positions,
    fromFirst: positions !== undefined && ctx.holds(TOTAL, ([total]) => total === count),
    interleaved,
  };
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const quantized = 'a quantized cache of a form that onnxruntime refuses';
const normalized = 'normalized queries and keys';

export const groupQueryAttention: Kernel<GroupAttributes> = {
  op: 'GroupQueryAttention',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, ['int32'], [], FLOATS, FLOATS, ['int64'], FLOATS, FLOATS],
  requires: [
    {
      attribute: 'sliding_window_cache',
      values: [0],
      otherwise: 'sliding_window_cache, of a form that onnxruntime refuses',
    },
    { noOutput: 3, otherwise: 'scores as an output' },
    { noInput: 12, otherwise: quantized },
    { noInput: 13, otherwise: quantized },
    { noInput: 14, otherwise: normalized },
    { noInput: 15, otherwise: normalized },
  ],
  appended: () => ({
    caches: [
      [PAST_KEY, 1],
      [PAST_VALUE, 2],
    ],
    by: { lengths: LENGTHS, total: TOTAL },
  }),
  attributes,
  resolve,
};
