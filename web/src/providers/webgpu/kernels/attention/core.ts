// Attention over heads, in any places in memory: in one dispatch where possible, otherwise scores, their softmax, and
// the weighted sum of values one after another.
import { DType } from '../../../../schema';
import type { Context, Tensor } from '../../../../contract/kernel';
import { foldWalk } from '../../../../contract/shape';
import { stridedCopy } from '../../wgsl/strided_copy';
import { joining } from '../joining/concat';
import { multiply, readsTransposed } from '../matmul/product/multiply';
import { attentionSoftmax } from './softmax';
import { flashAttention } from './flash_attention';
import { type Attention, type Heads, headsOf } from './spec';

export function attend(ctx: Context, t: Attention): void {
  const { batch, heads, kvHeads, queries, keys, size, valueSize, debug } = t;
  if (t.y.tensor.size === 0 || (!ctx.device.ownElement && flashAttention(ctx, t))) return;
  const shared = heads / kvHeads;
  const q = plain(ctx, t.q, [batch, heads, queries, size]);
  const v = plain(ctx, t.v, [batch, kvHeads, keys, valueSize]);
  const k = keysOf(ctx, t);
  const dims = [batch, heads, queries, keys] as const;
  const scores = debug?.mode === 0 ? debug.tensor : ctx.temp(dims, DType.float32);
  const overHeads = (a: Heads['strides'], b: readonly [number, number], y: Heads['strides']) => {
    const { dims: folded, strides } = foldWalk({
      dims: [batch, kvHeads, shared],
      strides: [
        [a[0], a[1] * shared, a[1]],
        [b[0], b[1], 0],
        [y[0], y[1] * shared, y[1]],
      ],
    });
    return {
      batch: folded.length,
      strides: {
        plain: { batch: folded },
        a: { a_batch: strides[0] },
        b: { b_batch: strides[1], y_batch: strides[2] },
      },
    };
  };
  const scoreStrides = [heads * queries * keys, queries * keys, keys] as const;
  multiply(ctx, {
    left: 'matrix',
    a: q.tensor,
    b: k.tensor,
    y: scores,
    m: queries,
    n: keys,
    depth: size,
    taps: 1,
    z: batch * heads,
    transposed: k.transposed,
    lda: q.strides[2],
    ldb: k.ldb,
    ldy: keys,
    alpha: t.scale,
    ...overHeads(q.strides, k.strides, scoreStrides),
  });
  const probabilities = debug?.mode === 3 ? debug.tensor : ctx.temp(dims, DType.float32);
  attentionSoftmax(ctx, {
    ...t.masking,
    scores,
    probabilities,
    dims,
    debug: debug && (debug.mode === 1 || debug.mode === 2) ? { mode: debug.mode, tensor: debug.tensor } : undefined,
  });
  multiply(ctx, {
    left: 'matrix',
    a: probabilities,
    b: v.tensor,
    y: t.y.tensor,
    m: queries,
    n: valueSize,
    depth: keys,
    taps: 1,
    z: batch * heads,
    lda: keys,
    ldb: v.strides[2],
    ldy: t.y.strides[2],
    ...overHeads(scoreStrides, [v.strides[0], v.strides[1]], t.y.strides),
  });
}

/**
 * The keys as the right operand of a product: in place if the product can read them, otherwise as columns [batch,
 * kvHeads, size, keys].
 */
function keysOf(
  ctx: Context,
  { k, batch, kvHeads, keys, size, queries }: Attention,
): { tensor: Tensor; transposed: boolean; ldb: number; strides: [number, number] } {
  if (readsTransposed(ctx, queries, size) && k.strides.every((stride) => stride % 4 === 0)) {
    const { tensor, strides } = plain(ctx, k, [batch, kvHeads, keys, size]);
    return { tensor, transposed: true, ldb: strides[2], strides: [strides[0], strides[1]] };
  }
  const columns = ctx.temp([batch, kvHeads, size, keys], k.tensor.dtype);
  stridedCopy(
    ctx,
    k.tensor,
    { offset: k.offset, strides: [k.strides[0], k.strides[1], 1, k.strides[2]] },
    columns,
    { strides: [kvHeads * size * keys, size * keys, keys, 1] },
    [batch, kvHeads, size, keys],
  );
  return { tensor: columns, transposed: false, ldb: keys, strides: [kvHeads * size * keys, size * keys] };
}

/** The heads where a product can read them: from the tensor's start; `ordered`: and in the order of headsOf. */
function plain(ctx: Context, heads: Heads, dims: readonly [number, number, number, number], ordered = false): Heads {
  const [, count, positions, size] = dims;
  const inOrder = `${heads.strides}` === `${[count * positions * size, positions * size, size]}`;
  if (!heads.offset && (!ordered || inOrder)) return heads;
  const copy = headsOf(ctx.temp(dims, heads.tensor.dtype));
  stridedCopy(
    ctx,
    heads.tensor,
    { offset: heads.offset, strides: [...heads.strides, 1] },
    copy.tensor,
    { strides: [...copy.strides, 1] },
    dims,
  );
  return copy;
}

/**
 * Fills [batch, heads, positions, size] of `target` with `past` (of the same form) and then `heads`; `part`: the index,
 * if tensors have several. With `used`, that many rows of the past come before, and those that are not overwritten stay
 * after.
 */
export function appendHeads(
  ctx: Context,
  past: Tensor | undefined,
  heads: Heads,
  target: Tensor,
  dims: readonly [number, number, number, number],
  part = 0,
  used?: number,
): Heads {
  const [batch, count, total, size] = dims;
  const old = past ? past.dims[past.dims.length - 2] : 0;
  const before = used ?? old;
  const within = (tensor: Tensor, positions: number): Heads => ({
    tensor,
    offset: part * batch * count * positions * size,
    strides: [count * positions * size, positions * size, size],
  });
  const to = within(target, used === undefined ? total : old);
  const copy = (from: Heads, first: number, positions: number) =>
    stridedCopy(
      ctx,
      from.tensor,
      { offset: from.offset, strides: [...from.strides, 1] },
      target,
      { offset: to.offset! + first * size, strides: [...to.strides, 1] },
      [batch, count, positions, size],
    );
  const hasPast = past !== undefined && past.size > 0;
  if (hasPast && ctx.device.ownElement && part === 0 && used === undefined) {
    const added = [batch, count, total - before, size] as const;
    const rows = ctx.reshape(plain(ctx, heads, added, true).tensor, added);
    ctx.call(joining, { axis: 2, columns: { x: [], residual: [], y: [] } }, [past, rows], [target]);
    return to;
  }
  if (hasPast) copy(within(past, old), 0, old);
  copy(heads, before, total - before);
  return to;
}
