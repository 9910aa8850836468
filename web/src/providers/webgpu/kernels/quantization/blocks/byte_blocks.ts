// Rows and weights as bytes with a scale for each block of k, for accuracy_level 4.
import type { Context, Shader, Spec, Tensor } from '../../../../../contract/kernel';
import { DType } from '../../../../../schema';
import { inLanes, linearMain, linearWorkgroups } from '../../../wgsl';
import { repeated } from '../../../wgsl/repeated';
import { type Packed, scaleOf, zeroOf } from './few_bits';
import type { ByteBlocks } from './byte_weights';

interface RowSpec extends Spec {
  /** Words of a block. */
  readonly words: number;
}

const THREADS = 256;
/** A block has a power of two numbers, up to this. */
export const MOST_IN_BLOCK = 4 * THREADS;

/** A thread has a word; those of a block find its largest magnitude, which becomes 127. */
const ROWS: Shader<RowSpec> = {
  name: 'byte_blocks__rows',
  wgsl: ({ words }) => `var<workgroup> largest_of: array<f32, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) {
  let i = (group.y * groups.x + group.x) * ${THREADS}u + lane;
  // Threads beyond the end use the last word: all must meet at the barrier.
  let x = vec4<f32>(a[min(i, u.count - 1u)]);
  let most = max(abs(x.xy), abs(x.zw));
  largest_of[lane] = max(most.x, most.y);
  workgroupBarrier();
  var largest = 0.0;
  for (var other = 0u; other < ${words}u; other++) {
    largest = max(largest, largest_of[lane / ${words}u * ${words}u + other]);
  }
  if (i >= u.count) { return; }
  let inverse = select(0.0, 127.0 / largest, largest > 0.0);
  words[i] = pack4xI8(vec4<i32>(round(x * inverse)));
  if (lane % ${words}u == 0u) { scales[i / ${words}u] = largest / 127.0; }
}
`,
};

/** a [m, k] as words [m, k / 4], and their scales [m, k / block]. */
export function blockRows(ctx: Context, a: Tensor, k: number, block: number): { words: Tensor; scales: Tensor } {
  const m = a.size / k;
  const words = ctx.temp([m, k / 4], DType.uint32);
  const scales = ctx.temp([m, k / block], DType.float32);
  ctx.dispatch({
    shader: ROWS,
    spec: { words: block / 4 },
    inputs: { a: inLanes(a, 4) },
    outputs: { words, scales },
    uniforms: { count: words.size },
    workgroups: linearWorkgroups(words.size, ctx.device, THREADS),
  });
  return { words, scales };
}

/** One thread reads words that memory reads at once: this number of them, or fewer at the end of a column. */
const AT_ONCE = 8;

/** From words of weights [n, …] to words of bytes [k / 4, n], minus their zero points, and scales [k / block, n]. */
const WEIGHTS: Shader<Packed & Spec> = {
  name: 'byte_blocks__weights',
  wgsl: (packed) => {
    const { bits } = packed;
    const shifts = (four: number) => [0, 1, 2, 3].map((t) => `${(4 * four + t) * bits}u`).join(', ');
    const bytes = (
      four: number,
    ) => `{ let numbers = (word >> vec4<u32>(${shifts(four)})) & vec4<u32>(${2 ** bits - 1}u);
      words[(k / 4u + ${four}u) * u.n + column] = bitcast<i32>(pack4xI8(vec4<i32>(numbers) - zero)); }`;
    // A word's numbers are in one block.
    return linearMain(`  let column = i % u.n;
  let first = i / u.n * ${AT_ONCE}u;
  ${repeated(AT_ONCE, (next) => `let word_${next} = b[column * u.stride + min(first + ${next}u, u.words - 1u)];`)}
  ${repeated(
    AT_ONCE,
    (next) => `if (first + ${next}u < u.words) {
    let word = vec4<u32>(word_${next});
    let k = (first + ${next}u) * ${32 / bits}u;
    let block = k / u.block;
    let zero = i32(${zeroOf(packed, 'column')});
    ${repeated(8 / bits, bytes)}
    if (k % u.block == 0u) { factors[block * u.n + column] = ${scaleOf(packed, 'column')}; }
  }`,
  )}`);
  },
};

export function blockWeights(
  ctx: Context,
  { words: b, packed, inputs, sizes }: ByteBlocks,
  { k, n, block }: { readonly k: number; readonly n: number; readonly block: number },
): { words: Tensor; scales: Tensor } {
  const words = ctx.temp([k / 4, n], DType.int32, packed.bits === 8);
  const scales = ctx.temp([k / block, n], DType.float32, packed.bits === 8);
  const count = n * Math.ceil((k * packed.bits) / 32 / AT_ONCE);
  ctx.dispatch({
    shader: WEIGHTS,
    spec: { ...packed },
    inputs: { b, ...inputs },
    outputs: { words, factors: scales },
    uniforms: { count, n, block, words: (k * packed.bits) / 32, stride: b.size / n, ...sizes },
    workgroups: linearWorkgroups(count, ctx.device),
  });
  return { words, scales };
}
