// Weights of bytes in the form for products by dot4I8Packed.
import type { Binding, Context, Shader, Spec, StorageType, Tensor, Uniforms } from '../../../../../contract/kernel';
import { DType } from '../../../../../schema';
import { linearMain, linearWorkgroups, load } from '../../../wgsl';
import { type Packed, scaleOf, zeroOf } from './few_bits';

/**
 * A thread has a column: from statements that declare `word`, its bytes from 4 * k on, it makes words [k / 4, n] and
 * the column's facts for ByteFactors.
 */
function columnMain(word: string, zero: string, scale: string): string {
  return linearMain(`  var sum = 0;
  for (var k = 0u; k < u.words; k++) {
    ${word}
    words[k * u.count + i] = bitcast<i32>(word);
    sum += dot4I8Packed(word, 0x01010101u);
  }
  columns[i] = sum;
  columns[u.count + i] = ${zero};
  columns[2u * u.count + i] = bitcast<i32>(${scale});`);
}

/** From words of bytes [n, k / 4], stored plus 128. */
const BLOCKS: Shader<Packed & Spec> = {
  name: 'byte_weights__blocks',
  wgsl: (packed) =>
    columnMain(
      'let word = b[i * u.stride + k] ^ 0x80808080u;',
      `i32(${zeroOf(packed, 'i', '0u')}) - 128`,
      scaleOf(packed, 'i', '0u'),
    ),
};

export interface ByteBlocks {
  /** For each column the bytes of its blocks, which have one scale and zero point; four to a word. */
  readonly words: Tensor;
  readonly packed: Packed;
  readonly inputs: { readonly [name: string]: Binding };
  readonly sizes: { readonly blocks: number; readonly zero_bytes: number };
}

/** From floats [k, n] that are whole multiples of their column's scale. */
const FLOATS: Shader<{ readonly weights: StorageType; readonly scales: StorageType }> = {
  name: 'byte_weights__floats',
  wgsl({ weights, scales }) {
    const scale = load(scales, 1, 'scales[i]');
    const four = [0, 1, 2, 3].map((t) => load(weights, 1, `w[at + ${t}u * u.count]`)).join(', ');
    return columnMain(
      `let at = 4u * k * u.count + i;
    let word = pack4xI8(vec4<i32>(round(vec4<f32>(${four}) / ${scale})));`,
      '0',
      scale,
    );
  },
};

export interface ByteWeights {
  /** int32 [k / 4, n] */
  readonly words: Tensor;
  readonly columns: Tensor;
}

/** For weights whose last axis is n. */
export function wordsOfFloats(ctx: Context, w: Tensor, scales: Tensor): ByteWeights {
  const n = w.dims[w.dims.length - 1];
  const spec = { weights: w.storage, scales: scales.storage };
  return made(ctx, FLOATS, spec, { w, scales }, w.size / n, n);
}

export function wordsOfBlocks(
  ctx: Context,
  { words: b, packed, inputs, sizes }: ByteBlocks,
  k: number,
  n: number,
): ByteWeights {
  return made(ctx, BLOCKS, { ...packed }, { b, ...inputs }, k, n, { stride: b.size / n, ...sizes });
}

function made<S extends Spec>(
  ctx: Context,
  shader: Shader<S>,
  spec: S,
  inputs: { readonly [name: string]: Binding },
  k: number,
  n: number,
  sizes: Uniforms = {},
): ByteWeights {
  const words = ctx.temp([k / 4, n], DType.int32, true);
  const columns = ctx.temp([3, n], DType.int32, true);
  ctx.dispatch({
    shader,
    spec,
    inputs,
    outputs: { words, columns },
    uniforms: { count: n, words: k / 4, ...sizes },
    workgroups: linearWorkgroups(n, ctx.device),
  });
  return { words, columns };
}
