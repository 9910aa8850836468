// Attention of ai.onnx; those of com.microsoft are in multi_head.ts.
import type { Attributes } from '../../../../contract/attributes';
import { type Context, type DTypeName, type Kernel, KernelError, type Tensor } from '../../../../contract/kernel';
import { appendHeads, attend } from './core';
import { type Heads, headsOf, headsWithin } from './spec';
import { groupQueryAttention } from './group_query';
import { appendToCache } from './kv_append';
import { maskOf } from './mask';
import { microsoftAttention, multiHeadAttention } from './multi_head';
import { Dialect, Place } from '../../../../schema/dialect';

interface AttentionAttributes {
  readonly heads: number;
  readonly kvHeads: number;
  readonly scale: number;
  readonly softcap: number;
  readonly causal: boolean;
  /** Set by the compiler for attention that it fused: see Masking. */
  readonly nanRows: boolean;
  /** Likewise: a mask of fewer keys does not hide the keys after it. */
  readonly maskBroadcasts: boolean;
  readonly left: number;
  readonly right: number;
  readonly debugMode: number;
  /** If q, k and v are parts of wider rows: their first columns, and the sizes of a query and of a value. */
  readonly offsets: readonly number[];
  readonly headSizes: readonly number[];
  /**
   * The model's inputs that are as long as the keys, if its caches may be in buffers with room for more rows
   * (py_ort/compiler/passes/placed/growing_caches.py).
   */
  readonly growing?: readonly number[];
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

function attributes(a: Attributes): AttentionAttributes {
  return {
    heads: a.integer('q_num_heads', 0),
    kvHeads: a.integer('kv_num_heads', 0),
    scale: a.number('scale', 0),
    softcap: a.number('softcap', 0),
    causal: a.integer('is_causal', 0) !== 0,
    nanRows: a.integer(Dialect.NAN_ROWS, 0) !== 0,
    maskBroadcasts: a.integer(Dialect.MASK_BROADCASTS, 0) !== 0,
    left: a.integer('left_window_size', -1),
    right: a.integer('right_window_size', -1),
    debugMode: a.integer('qk_matmul_output_mode', 0),
    offsets: a.integers(Dialect.OFFSETS),
    headSizes: a.integers(Dialect.HEAD_SIZES),
    growing: a.has(Dialect.GROWS) ? a.integers(Dialect.GROWS_WITH) : undefined,
  };
}

/** [batch, heads, positions, size] of an input of rank 3 or 4. */
function formOf(x: Tensor, heads: number): { form: readonly [number, number, number, number]; where: Heads } {
  if (x.dims.length === 4) return { form: [x.dims[0], x.dims[1], x.dims[2], x.dims[3]], where: headsOf(x) };
  if (x.dims.length !== 3 || heads <= 0 || x.dims[2] % heads !== 0)
    throw new KernelError(`Attention of [${x.dims}] in ${heads} heads`);
  const size = x.dims[2] / heads;
  return { form: [x.dims[0], heads, x.dims[1], size], where: headsWithin(x, size) };
}

/** The same for columns in the middle of [batch, positions, width]. */
function partOf(x: Tensor, heads: number, size: number, offset: number): ReturnType<typeof formOf> {
  if (x.dims.length !== 3 || offset + heads * size > x.dims[2])
    throw new KernelError(`Attention of ${heads} x ${size} columns from ${offset} of [${x.dims}]`);
  return { form: [x.dims[0], heads, x.dims[1], size], where: headsWithin(x, size, offset) };
}

/** The same, repeated for this number of batches and positions. */
function repeated({ form, where }: ReturnType<typeof formOf>, batch: number, count: number): ReturnType<typeof formOf> {
  const [own, heads, positions, size] = form;
  const [ofBatch, ofHead, ofPosition] = where.strides;
  const strides = [batch > own ? 0 : ofBatch, ofHead, count > positions ? 0 : ofPosition] as const;
  return { form: [batch, heads, count, size], where: { ...where, strides } };
}

/** Caches of keys and values with each batch's new row appended. */
function appended(
  ctx: Context,
  caches: readonly Tensor[],
  parts: readonly ReturnType<typeof formOf>[],
  lengths: Tensor,
): Heads[] {
  const [batch, , count] = parts[0].form;
  const rows = parts.map(({ form: [, heads, , size], where }, i) => {
    ctx.view(i + 1, caches[i], caches[i].dims);
    return { size, row: { from: where, heads, rotated: false, cache: true, kept: true, to: caches[i] } };
  });
  for (const size of new Set(rows.map((one) => one.size))) {
    const alike = rows.filter((one) => one.size === size).map(({ row }) => row);
    appendToCache(ctx, { batch, count, size, lengths }, alike);
  }
  return caches.map(headsOf);
}

function resolve(ctx: Context, a: AttentionAttributes): void {
  const [mask, pastKey, pastValue, lengths, kept] = [
    Place.ATTENTION_MASK,
    Place.ATTENTION_PAST_KEY,
    Place.ATTENTION_PAST_VALUE,
    Place.ATTENTION_LENGTHS,
    Place.ATTENTION_KEPT,
  ].map((i) => ctx.inputs[i]);
  const forms = [a.heads, a.kvHeads, a.kvHeads].map((heads, i) =>
    a.offsets.length === 3
      ? partOf(ctx.input(i), heads, a.headSizes[i === 2 ? 1 : 0], a.offsets[i])
      : formOf(ctx.input(i), heads),
  );
  // Scores of one batch or one row, broadcast to the mask as in Add and Where.
  const most = (axis: number, own: number) =>
    own === 1 && a.maskBroadcasts
      ? Math.max(...[mask, kept].map((each) => each?.dims[each.dims.length - axis] ?? 1))
      : own;
  const batch = most(4, forms[0].form[0]);
  const rows = most(2, forms[0].form[2]);
  const [q, k, v] = forms.map((part, i) => repeated(part, batch, i === 0 ? rows : part.form[2]));
  const [, heads, queries, size] = q.form;
  const [, kvHeads, incoming] = k.form;
  const valueSize = v.form[3];
  if (k.form[3] !== size || heads % kvHeads !== 0)
    throw new KernelError(`Attention of queries [${q.form}] over keys [${k.form}]`);
  const past = pastKey?.dims[2] ?? 0;
  const before =
    ctx.boundInPlace(1, Place.ATTENTION_PAST_KEY) && ctx.boundInPlace(2, Place.ATTENTION_PAST_VALUE) && queries === 1
      ? ctx.rowsBefore()
      : undefined;
  const keys = before ? past : past + incoming;
  const flat = ctx.input(0).dims.length === 3;
  const y = ctx.output(0, flat ? [batch, queries, heads * valueSize] : [batch, heads, queries, valueSize]);
  const joined = (i: number, given: Tensor | undefined, part: typeof k): Heads => {
    if (!given && !ctx.wants(i)) return part.where;
    const dims = [batch, kvHeads, keys, part.form[3]] as const;
    return appendHeads(
      ctx,
      given,
      part.where,
      ctx.wants(i) ? ctx.output(i, dims) : ctx.temp(dims, part.where.tensor.dtype),
      dims,
    );
  };
  const [allKeys, allValues] =
    before && pastKey && pastValue
      ? appended(ctx, [pastKey, pastValue], [k, v], before)
      : [joined(1, pastKey, k), joined(2, pastValue, v)];
  const dims = [batch, heads, queries, past + incoming];
  attend(ctx, {
    batch,
    heads,
    kvHeads,
    queries,
    keys,
    size,
    valueSize,
    q: q.where,
    k: allKeys,
    v: allValues,
    y: flat ? headsWithin(y, valueSize) : headsOf(y),
    scale: a.scale || 1 / Math.sqrt(size),
    masking: {
      masks: mask ? [maskOf(mask, dims, !a.maskBroadcasts)] : [],
      kept: kept && maskOf(kept, dims, false),
      causal: a.causal,
      nanRows: a.nanRows,
      left: a.left,
      right: a.right,
      past,
      lengths: before ?? lengths,
      more: before ? 1 : 0,
      place: 'end',
      softcap: a.softcap,
    },
    debug: ctx.wants(3) ? { mode: a.debugMode, tensor: ctx.output(3, dims) } : undefined,
  });
}

const attention: Kernel<AttentionAttributes> = {
  op: 'Attention',
  types: [FLOATS, FLOATS, FLOATS, [...FLOATS, 'bool'], FLOATS, FLOATS, ['int64', 'int32'], ['bool']],
  appended: ({ growing }) =>
    growing && {
      caches: [
        [Place.ATTENTION_PAST_KEY, 1],
        [Place.ATTENTION_PAST_VALUE, 2],
      ],
      by: { growing },
    },
  attributes,
  resolve,
};

export default [
  attention as Kernel,
  multiHeadAttention as Kernel,
  microsoftAttention as Kernel,
  groupQueryAttention as Kernel,
];
