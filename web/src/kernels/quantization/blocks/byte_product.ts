// Products of bytes on a GPU: a workgroup computes a tile of y from tiles of both operands in workgroup memory, in
// whole numbers, four elements of k at a time by dot4I8Packed; the next tiles are on their way into registers
// meanwhile. Where there would be too few workgroups, threads of each share k.
import type { Binding, Context, Shader, Spec, StorageType, Tensor } from '../../../contract/kernel';
import { DType } from '../../../schema';
import { inLanes, linearMain, linearWorkgroups, load, stored } from '../../../wgsl';
import { ended, EPILOGUE_F32, epilogueText, epilogueUniforms } from '../../../wgsl/epilogue';
import type { Instruction, Program } from '../../../wgsl/program';
import { repeated } from '../../../wgsl/repeated';
import type { ByteRows } from './byte_rows';
import { type Packed, scaleOf, zeroOf } from './few_bits';

interface ByteTile {
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Depth, in fours of k. */
  readonly tileWords: number;
  /** Parts of k that threads share. */
  readonly slices: number;
}

interface ProductSpec extends ByteTile, Spec {
  readonly bias?: StorageType;
  /** What is done to the sum and its bias, before the residual is added. */
  readonly epilogue?: readonly Instruction[];
  readonly residual?: StorageType;
  readonly result: StorageType;
}

/** Rows of a thread; it has four columns. */
const ROWS = 4;

const PRODUCT: Shader<ProductSpec> = {
  name: 'byte_product',
  wgsl(spec) {
    const { tileRows, tileColumns, tileWords, slices } = spec;
    const across = tileColumns / 4;
    const threads = (tileRows / ROWS) * across;
    const [sizeA, sizeB] = [tileRows * tileWords, tileWords * across];
    const slots = (size: number) => Math.ceil(size / threads);
    const slot = (i: number) => `(thread + ${i * threads}u)`;
    const guard = (size: number, i: number) => ((i + 1) * threads > size ? `if (${slot(i)} < ${size}u) ` : '');
    const fetch = `${repeated(
      slots(sizeA),
      (i) => `{ let word = at_k + ${slot(i)} % ${tileWords}u;
      let row_of_a = min(first_row + ${slot(i)} / ${tileWords}u, u.m - 1u);
      next_a_${i} = select(0u, a[row_of_a * u.words + word], word < end); }`,
    )}
    ${repeated(
      slots(sizeB),
      (i) => `next_b_${i} = b[min(at_k + ${slot(i)} / ${across}u, u.words - 1u) * u.quads
        + min(first_column + ${slot(i)} % ${across}u, u.quads - 1u)];`,
    )}`;
    const dots = (i: number) =>
      ['x', 'y', 'z', 'w'].map((c) => `dot4I8Packed(a_${i}, bitcast<u32>(b_0.${c}))`).join(', ');
    const place = (i: number) => `(row + ${i}u) * ${across}u + column`;
    return `var<workgroup> tile_a: array<u32, ${slices * sizeA}>;
var<workgroup> tile_b: array<vec4<i32>, ${slices * Math.max(sizeB, slices > 1 ? tileRows * across : 0)}>;
${endText(spec)}
@compute @workgroup_size(${slices * threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) invocation: u32) {
  let slice = invocation / ${threads}u;
  let thread = invocation % ${threads}u;
  let first_row = group.x * ${tileRows}u;
  let first_column = group.y * ${across}u;
  let row = thread / ${across}u * ${ROWS}u;
  let column = thread % ${across}u;
  let in_a = slice * ${sizeA}u;
  let in_b = slice * ${sizeB}u;
  let depth = (u.words + ${slices * tileWords - 1}u) / ${slices * tileWords}u * ${tileWords}u;
  var at_k = slice * depth;
  let end = min(u.words, at_k + depth);
  ${repeated(ROWS, (i) => `var sum_${i} = vec4<i32>(0);`)}
  ${repeated(slots(sizeA), (i) => `var next_a_${i} = 0u;`)}
  ${repeated(slots(sizeB), (i) => `var next_b_${i} = vec4<i32>(0);`)}
  ${fetch}
  for (var done = 0u; done < depth; done += ${tileWords}u) {
    ${repeated(slots(sizeA), (i) => `${guard(sizeA, i)}{ tile_a[in_a + ${slot(i)}] = next_a_${i}; }`)}
    ${repeated(slots(sizeB), (i) => `${guard(sizeB, i)}{ tile_b[in_b + ${slot(i)}] = next_b_${i}; }`)}
    workgroupBarrier();
    at_k += ${tileWords}u;
    if (done + ${tileWords}u < depth) {
    ${fetch}
    }
    for (var q = 0u; q < ${tileWords}u; q++) {
      let b_0 = tile_b[in_b + q * ${across}u + column];
      ${repeated(ROWS, (i) => `let a_${i} = tile_a[in_a + (row + ${i}u) * ${tileWords}u + q];`)}
      ${repeated(ROWS, (i) => `sum_${i} += vec4<i32>(${dots(i)});`)}
    }
    workgroupBarrier();
  }
  ${
    slices === 1
      ? repeated(ROWS, (i) => `finish(first_row + row + ${i}u, first_column + column, sum_${i});`)
      : `${repeated(ROWS, (i) => `tile_b[slice * ${tileRows * across}u + ${place(i)}] = sum_${i};`)}
  workgroupBarrier();
  for (var e = invocation; e < ${tileRows * across}u; e += ${slices * threads}u) {
    finish(first_row + e / ${across}u, first_column + e % ${across}u,
      ${Array.from({ length: slices }, (_, s) => `tile_b[${s * tileRows * across}u + e]`).join(' + ')});
  }`
  }
}`;
  },
};

/** Bytes are numbers less 128, and so are those of 0: sum of (a - a_0) * (b - b_0) = sum of a * b, less three terms. */
function endText({ bias, epilogue, residual, result }: ProductSpec): string {
  const biased = `vec4<f32>(exact) * scales${bias ? ` + ${load(bias, 4, 'bias[column]')}` : ''}`;
  const added = residual ? ` + ${load(residual, 4, 'residual[row * u.quads + column]')}` : '';
  return `${epilogueText(epilogue, 4)}
fn finish(row: u32, column: u32, sum: vec4<i32>) {
  if (row >= u.m || column >= u.quads) { return; }
  let of_row = rows[row];
  let sums = columns[column];
  let zeros = columns[u.quads + column];
  let scales = bitcast<f32>(of_row.z) * bitcast<vec4<f32>>(columns[2u * u.quads + column]);
  let exact = sum - of_row.y * sums - zeros * (of_row.x - 4 * i32(u.words) * of_row.y);
  y[row * u.quads + column] = ${stored(result, 4, ended(epilogue, biased) + added)};
}`;
}

/** Of weights [n, k] of bytes: words [k / 4, n]; of each column the sum, the byte of 0, and the bits of its scale. */
const WEIGHTS: Shader<Packed & Spec> = {
  name: 'byte_weights',
  wgsl: (packed) =>
    linearMain(`  var sum = 0;
  for (var k = 0u; k < u.words; k++) {
    let word = b[i * u.stride + k] ^ 0x80808080u;
    words[k * u.count + i] = bitcast<i32>(word);
    sum += dot4I8Packed(word, 0x01010101u);
  }
  columns[i] = sum;
  columns[u.count + i] = i32(${zeroOf(packed, 'i', '0u')}) - 128;
  columns[2u * u.count + i] = bitcast<i32>(${scaleOf(packed, 'i', '0u')});`),
};

export interface ByteWeights {
  /** The bytes, of each column together, four to a word. */
  readonly words: Tensor;
  readonly packed: Packed;
  readonly inputs: { readonly [name: string]: Binding };
  readonly sizes: { readonly blocks: number; readonly zero_bytes: number };
}

/**
 * y [m, n] = epilogue(the rows that the bytes stand for times weights with one scale and zero point a column, + bias) +
 * residual; k and n are multiples of 4.
 */
export function byteProduct(
  ctx: Context,
  { words: a, rows }: ByteRows,
  weights: ByteWeights,
  y: Tensor,
  { epilogue, ...ends }: { readonly bias?: Tensor; readonly epilogue?: Program; readonly residual?: Tensor },
): void {
  const [m, depth] = a.dims;
  const n = y.size / m;
  const b = ctx.temp([depth, n], DType.int32, true);
  const columns = ctx.temp([3, n], DType.int32, true);
  ctx.dispatch({
    shader: WEIGHTS,
    spec: { ...weights.packed },
    inputs: { b: weights.words, ...weights.inputs },
    outputs: { words: b, columns },
    uniforms: { count: n, words: depth, stride: weights.words.size / n, ...weights.sizes },
    workgroups: linearWorkgroups(n, ctx.device),
  });
  const tile = byteTile(m, n, depth);
  const given = Object.entries(ends).filter((each): each is [string, Tensor] => each[1] !== undefined);
  ctx.dispatch({
    shader: PRODUCT,
    spec: {
      ...tile,
      ...Object.fromEntries(given.map(([name, { storage }]) => [name, storage])),
      epilogue: epilogue?.instructions,
      result: y.storage,
    },
    inputs: {
      a,
      rows: inLanes(rows, 4),
      b: inLanes(b, 4),
      columns: inLanes(columns, 4),
      ...Object.fromEntries(given.map(([name, tensor]) => [name, inLanes(tensor, 4)])),
    },
    outputs: { y: inLanes(y, 4) },
    inPlace: {},
    uniforms: { m, words: depth, quads: n / 4, ...epilogueUniforms(epilogue) },
    f32: EPILOGUE_F32,
    workgroups: [Math.ceil(m / tile.tileRows), Math.ceil(n / tile.tileColumns), 1],
  });
}

/**
 * What was quickest on an H100 for products of BERT's, ResNet-50's and MiniLM's sizes, of 48 tiles: large ones where
 * there is enough to do for all units.
 */
function byteTile(m: number, n: number, depth: number): ByteTile {
  const groups = (rows: number, columns: number) => Math.ceil(m / rows) * Math.ceil(n / columns);
  if (groups(64, 64) >= 192) return { tileRows: 64, tileColumns: 64, tileWords: 32, slices: 1 };
  if (groups(32, 32) >= 256) return { tileRows: 32, tileColumns: 32, tileWords: 16, slices: depth > 16 ? 2 : 1 };
  return { tileRows: 16, tileColumns: 32, tileWords: depth >= 128 ? 16 : 8, slices: depth > 8 ? 4 : 1 };
}
