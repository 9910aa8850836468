// MultiHeadAttention and Attention of com.microsoft: the forms that onnxruntime's optimiser gives to transformers.
import type { Attributes } from '../../jsep/attributes';
import { type Context, type DTypeName, type Kernel, KernelError, MICROSOFT_DOMAIN, type Shader, type Spec, type StorageType, type Tensor } from '../../jsep/kernel';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { multiply } from '../product/multiply';
import { appendHeads, attend, type Heads, headsOf, headsWithin } from './core';
import { maskOf } from './mask';
import type { Hiding, Mask } from './hiding';

interface HeadAttributes {
  readonly heads: number;
  readonly scale: number;
  readonly causal: boolean;
  readonly sizes: readonly number[];
}

const attributes = (a: Attributes): HeadAttributes => ({
  heads: a.integer('num_heads', 0), scale: a.number('scale', 0), causal: a.integer('unidirectional', 0) !== 0, sizes: a.integers('qkv_hidden_sizes'),
});

/** What a padding mask of int32 hides: [batch] lengths, [batch, keys], or [batch, queries, keys]. */
function padding(mask: Tensor | undefined, dims: readonly number[]): Pick<Hiding, 'masks' | 'lengths'> {
  if (!mask) return { masks: [] };
  const [batch, , queries, keys] = dims;
  if (mask.dims.length === 1 && mask.dims[0] === batch) return { masks: [], lengths: mask };
  if (mask.dims.length === 2 && mask.dims[1] === keys) return { masks: [{ tensor: mask, strides: [keys, 0, 0, 1], length: keys }] };
  if (mask.dims.length === 3) return { masks: [{ tensor: mask, strides: [queries * keys, 0, keys, 1], length: keys }] };
  throw new KernelError(`attention with a mask of shape [${mask.dims}]`, true);
}

function hidingOf(mask: Tensor | undefined, added: Tensor | undefined, dims: readonly number[], causal: boolean, past: number): Hiding {
  const pad = padding(mask, dims);
  const masks: Mask[] = [...pad.masks, ...(added ? [maskOf(added, dims)] : [])];
  return { masks, lengths: pad.lengths, causal, left: -1, right: -1, past, softcap: 0 };
}

interface BiasSpec extends Spec {
  readonly storage: StorageType;
}
const BIAS: Shader<BiasSpec> = {
  name: 'attention_bias__any',
  wgsl: ({ storage }) => linearMain(`  y[i] = ${stored(storage, 1, 'f32(x[i]) + f32(bias[u.start + i % u.width])')};`),
};

/** x [batch, positions, width] + the part of the bias from `start`. */
function biased(ctx: Context, x: Tensor, bias: Tensor | undefined, start: number): Tensor {
  if (!bias) return x;
  const y = ctx.temp(x.dims, x.dtype);
  ctx.dispatch({
    shader: BIAS, spec: { storage: x.storage }, inputs: { x, bias }, outputs: { y },
    uniforms: { count: x.size, width: x.dims[2], start }, workgroups: linearWorkgroups(x.size, ctx.device),
  });
  return y;
}

/** Part `part` of [batch, positions, heads, parts, size]. */
function packedHeads(x: Tensor, part: number): Heads {
  const [, positions, heads, parts, size] = x.dims;
  return { tensor: x, offset: part * size, strides: [positions * heads * parts * size, parts * size, heads * parts * size] };
}

/** query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value */
function resolveMultiHead(ctx: Context, { heads, scale, causal }: HeadAttributes): void {
  const query = ctx.input(0);
  const [key, value, bias, mask, added, pastKey, pastValue] = [1, 2, 3, 4, 5, 6, 7].map((i) => ctx.inputs[i]);
  const [batch, queries] = query.dims;
  const size = query.dims.length === 5 ? query.dims[4] : query.dims[2] / heads;
  if (heads <= 0 || !Number.isInteger(size)) throw new KernelError(`MultiHeadAttention of [${query.dims}] in ${heads} heads`);
  if (bias && (query.dims.length !== 3 || key?.dims.length !== 3)) throw new KernelError('MultiHeadAttention with a bias on packed inputs', true);
  let [q, k, v]: (Heads | undefined)[] = [];
  let incoming = queries;
  if (query.dims.length === 5) {
    [q, k, v] = [packedHeads(query, 0), packedHeads(query, 1), packedHeads(query, 2)];
  } else {
    q = headsWithin(biased(ctx, query, bias, 0), size);
    const source = ctx.input(1);
    incoming = source.dims.length === 4 ? source.dims[2] : source.dims[1];
    if (source.dims.length === 5) [k, v] = [packedHeads(source, 0), packedHeads(source, 1)];
    else if (source.dims.length === 4) [k, v] = [headsOf(source), headsOf(ctx.input(2))];
    else k = headsWithin(biased(ctx, source, bias, heads * size), size);
  }
  const valueSize = v ? (value?.dims[3] ?? size) : ctx.input(2).dims[2] / heads;
  v ??= headsWithin(biased(ctx, value!, bias, 2 * heads * size), valueSize);
  const past = pastKey?.dims[2] ?? 0;
  const keys = past + incoming;
  const y = ctx.output(0, [batch, queries, heads * valueSize]);
  const joined = (i: number, before: Tensor | undefined, part: Heads, width: number): Heads => {
    if (!before && !ctx.wants(i)) return part;
    const dims = [batch, heads, keys, width];
    return appendHeads(ctx, before, part, ctx.wants(i) ? ctx.output(i, dims) : ctx.temp(dims, part.tensor.dtype));
  };
  attend(ctx, {
    batch, heads, kvHeads: heads, queries, keys, size, valueSize, q, k: joined(1, pastKey, k!, size), v: joined(2, pastValue, v, valueSize),
    y: headsWithin(y, valueSize), scale: scale || 1 / Math.sqrt(size), hiding: hidingOf(mask, added, [batch, heads, queries, keys], causal, past),
  });
}

/** input [batch, positions, width], weights [width, q + k + v], bias, mask_index, past, attention_bias */
function resolveAttention(ctx: Context, { heads, scale, causal, sizes }: HeadAttributes): void {
  const [x, weights, bias] = [ctx.input(0), ctx.input(1), ctx.inputs[2]];
  if (ctx.inputs[4] || ctx.wants(1)) throw new KernelError('Attention of com.microsoft with a past', true);
  const [batch, queries, width] = x.dims;
  const columns = weights.dims[1];
  const [qSize, kSize, vSize] = sizes.length === 3 ? sizes : [columns / 3, columns / 3, columns / 3];
  const size = qSize / heads;
  if (heads <= 0 || !Number.isInteger(size) || qSize !== kSize) throw new KernelError(`Attention of [${x.dims}] in ${heads} heads of ${qSize} and ${kSize}`);
  const all = ctx.temp([batch, queries, columns], x.dtype);
  multiply(ctx, { left: 'matrix', a: x, b: weights, y: all, bias, m: batch * queries, n: columns, depth: width, taps: 1, z: 1, lda: width, ldb: columns, ldy: columns });
  const part = (offset: number, each: number): Heads => ({ tensor: all, offset, strides: [queries * columns, each, columns] });
  const y = ctx.output(0, [batch, queries, vSize]);
  attend(ctx, {
    batch, heads, kvHeads: heads, queries, keys: queries, size, valueSize: vSize / heads,
    q: part(0, size), k: part(qSize, size), v: part(qSize + kSize, vSize / heads), y: headsWithin(y, vSize / heads),
    scale: scale || 1 / Math.sqrt(size), hiding: hidingOf(ctx.inputs[3], ctx.inputs[5], [batch, heads, queries, queries], causal, 0),
  });
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const MASK: readonly DTypeName[] = ['int32'];

export const multiHeadAttention: Kernel<HeadAttributes> = {
  op: 'MultiHeadAttention', domain: MICROSOFT_DOMAIN, types: [FLOATS, FLOATS, FLOATS, FLOATS, MASK, FLOATS, FLOATS, FLOATS], attributes, resolve: resolveMultiHead,
};
export const microsoftAttention: Kernel<HeadAttributes> = {
  op: 'Attention', domain: MICROSOFT_DOMAIN, types: [FLOATS, FLOATS, FLOATS, MASK, FLOATS, FLOATS],
  requires: [{ noInput: 4, otherwise: 'a past' }, { noOutput: 1, otherwise: 'a present' }], attributes, resolve: resolveAttention,
};
