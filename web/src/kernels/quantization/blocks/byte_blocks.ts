// Rows and weights as bytes with a scale for each block of k, as accuracy_level 4 has them.
import type { Context, Shader, Spec, Tensor } from '../../../contract/kernel';
import { DType } from '../../../schema';
import { inLanes, linearMain, linearWorkgroups } from '../../../wgsl';
import { type Packed, scaleOf, zeroOf } from './few_bits';
import type { ByteBlocks } from './byte_weights';

/** A thread has a block: the largest magnitude becomes 127. */
const ROWS: Shader<Spec> = {
  name: 'byte_blocks__rows',
  wgsl: () =>
    linearMain(`  var most = vec4<f32>(0.0);
  for (var k = i * u.words; k < (i + 1u) * u.words; k++) { most = max(most, abs(vec4<f32>(a[k]))); }
  let largest = max(max(most.x, most.y), max(most.z, most.w));
  let inverse = select(0.0, 127.0 / largest, largest > 0.0);
  for (var k = i * u.words; k < (i + 1u) * u.words; k++) {
    words[k] = pack4xI8(vec4<i32>(round(vec4<f32>(a[k]) * inverse)));
  }
  scales[i] = largest / 127.0;`),
};

/** a [m, k] as words [m, k / 4], and their scales [m, k / block]. */
export function blockRows(ctx: Context, a: Tensor, k: number, block: number): { words: Tensor; scales: Tensor } {
  const m = a.size / k;
  const words = ctx.temp([m, k / 4], DType.uint32);
  const scales = ctx.temp([m, k / block], DType.float32);
  ctx.dispatch({
    shader: ROWS,
    spec: {},
    inputs: { a: inLanes(a, 4) },
    outputs: { words, scales },
    uniforms: { count: scales.size, words: block / 4 },
    workgroups: linearWorkgroups(scales.size, ctx.device),
  });
  return { words, scales };
}

/** Of words of weights [n, …]: words of bytes [k / 4, n], less their zero points, and scales [k / block, n]. */
const WEIGHTS: Shader<Packed & Spec> = {
  name: 'byte_blocks__weights',
  wgsl: (packed) => {
    const { bits } = packed;
    const shifts = [0, 1, 2, 3].map((t) => `${t * bits}u`).join(', ');
    return linearMain(`  let column = i % u.n;
  let k = i / u.n * 4u;
  let block = k / u.block;
  let word = b[column * u.stride + k * ${bits}u / 32u] >> (k * ${bits}u % 32u);
  let numbers = (vec4<u32>(word) >> vec4<u32>(${shifts})) & vec4<u32>(${2 ** bits - 1}u);
  words[i] = bitcast<i32>(pack4xI8(vec4<i32>(numbers) - i32(${zeroOf(packed, 'column')})));
  if (k % u.block == 0u) { factors[block * u.n + column] = ${scaleOf(packed, 'column')}; }`);
  },
};

export function blockWeights(
  ctx: Context,
  { words: b, packed, inputs, sizes }: ByteBlocks,
  { k, n, block }: { readonly k: number; readonly n: number; readonly block: number },
): { words: Tensor; scales: Tensor } {
  const words = ctx.temp([k / 4, n], DType.int32, packed.bits === 8);
  const scales = ctx.temp([k / block, n], DType.float32, packed.bits === 8);
  ctx.dispatch({
    shader: WEIGHTS,
    spec: { ...packed },
    inputs: { b, ...inputs },
    outputs: { words, factors: scales },
    uniforms: { count: words.size, n, block, stride: b.size / n, ...sizes },
    workgroups: linearWorkgroups(words.size, ctx.device),
  });
  return { words, scales };
}
