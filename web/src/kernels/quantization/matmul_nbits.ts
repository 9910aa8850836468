// com.microsoft's MatMulNBits: a product with weights of 2, 4 or 8 bits, in blocks of k with one scale and zero point
// each. Few rows are multiplied while the weights are unpacked; for more, the weights are unpacked first, and it is a
// product like others.
import {
  type Context,
  type Kernel,
  MICROSOFT_DOMAIN,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
} from '../../contract/kernel';
import {
  FLOATS,
  inLanes,
  type Lanes,
  laneType,
  linearMain,
  linearWorkgroups,
  load,
  stored,
  teamMain,
  teamSize,
  teamWorkgroups,
} from '../../wgsl';
import { multiply, readsTransposed } from '../matmul/product/multiply';

interface Packed {
  readonly bits: number;
  /** Of scales. */
  readonly storage: StorageType;
  /** Zero points: packed like the weights, floats, or the middle of the range. */
  readonly zeros: 'packed' | 'float' | 'middle';
}

/** WGSL of the scale and the zero point of block `block` of column `n`. */
function blockText({ bits, storage, zeros }: Packed): string {
  const zero = {
    middle: `${2 ** (bits - 1)}.0`,
    float: 'f32(zeros[n * u.blocks + block])',
    packed: `f32((zeros[n * u.zero_bytes + block * ${bits}u / 8u] >> (block * ${bits}u % 8u)) & ${2 ** bits - 1}u)`,
  }[zeros];
  return `  let scale = ${load(storage, 1, 'scales[n * u.blocks + block]')};\n  let zero = ${zero};`;
}

interface FewSpec extends Spec, Packed {
  readonly rows: 1 | 4;
  /** Whether k comes in whole steps: a is read 4 elements at a time then. */
  readonly whole: boolean;
  readonly team: number;
  readonly bias: boolean;
  readonly result: StorageType;
}

// A step is 4 bytes of a column: its weights are of one block.
const FEW: Shader<FewSpec> = {
  name: 'matmul_nbits__few',
  wgsl(spec) {
    const { bits, rows, whole, team, bias, result } = spec;
    const each = 8 / bits;
    const all = Array.from({ length: rows }, (_, row) => row);
    const type = rows === 4 ? 'vec4<f32>' : 'f32';
    return teamMain({
      team,
      neighbors: false,
      accumulators: [{ name: 'sum', type, start: `${type}(0.0)` }],
      prepare: `  let n = o % u.n;
  let row = o / u.n * ${rows}u;
${all.map((i) => `  let row_${i} = min(row + ${i}u, u.m - 1u) * u.k${whole ? ' / 4u' : ''};`).join('\n')}
  let first = 0u;
  let end = ${whole ? `u.k / ${4 * each}u` : 'u.steps'};`,
      step: `    let bytes = b[n * u.steps + r];
    let k = r * ${4 * each}u;
    let block = k / u.block;
${blockText(spec)}
${whole ? inFours(bits, rows) : oneByOne(bits, rows)}`,
      merge: '      sum += other_sum;',
      finish: all
        .map((i) => {
          const value = `sum${rows === 4 ? `[${i}]` : ''}${bias ? ' + f32(bias[n])' : ''}`;
          return `    if (row + ${i}u < u.m) { y[(row + ${i}u) * u.n + n] = ${stored(result, 1, value)}; }`;
        })
        .join('\n'),
    });
  },
};

/** Statements that add the products of the step's weights, `bytes`, to `sum`, 4 at a time. */
export function inFours(bits: number, rows: number): string {
  const each = 8 / bits;
  // The bytes of the weights 4 * j and on, and how far to shift each.
  const lanes = (j: number) =>
    [0, 1, 2, 3].map((t) => ({ byte: 'xyzw'[Math.floor((4 * j + t) / each)], shift: ((4 * j + t) % each) * bits }));
  return Array.from({ length: each }, (_, j) => {
    const of = lanes(j);
    const numbers = `(bytes.${of.map(({ byte }) => byte).join('')} >> vec4<u32>(${of
      .map(({ shift }) => `${shift}u`)
      .join(', ')})) & vec4<u32>(${2 ** bits - 1}u)`;
    const sums = Array.from(
      { length: rows },
      (_, i) => `sum${rows === 4 ? `[${i}]` : ''} += dot(vec4<f32>(a[row_${i} + r * ${each}u + ${j}u]), weights);`,
    );
    return `    { let weights = (vec4<f32>(${numbers}) - zero) * scale; ${sums.join(' ')} }`;
  }).join('\n');
}

/** The same where the last of them may lie beyond k. */
function oneByOne(bits: number, rows: number): string {
  const each = 8 / bits;
  const values = (k: string) =>
    rows === 4 ? `vec4(${[0, 1, 2, 3].map((row) => `f32(a[row_${row} + ${k}])`).join(', ')})` : `f32(a[row_0 + ${k}])`;
  return Array.from({ length: 4 * each }, (_, i) => {
    const weight = `(f32((bytes[${Math.floor(i / each)}] >> ${(i % each) * bits}u) & ${2 ** bits - 1}u) - zero)
        * scale`;
    return `    if (k + ${i}u < u.k) { sum += ${values(`k + ${i}u`)} * (${weight}); }`;
  }).join('\n');
}

interface UnpackSpec extends Spec, Packed {
  /** Whether the matrix is [n, k]; else [k, n]. */
  readonly transposed: boolean;
  readonly lanes: Lanes;
  readonly result: StorageType;
}

const UNPACK: Shader<UnpackSpec> = {
  name: 'matmul_nbits__unpack',
  wgsl(spec) {
    const { bits, transposed, lanes, result } = spec;
    const each = Array.from({ length: lanes }, (_, t) =>
      transposed ? `unpacked(at / u.k, at % u.k + ${t}u)` : `unpacked(at % u.n + ${t}u, at / u.n)`,
    );
    return `
fn unpacked(n: u32, k: u32) -> f32 {
  let block = k / u.block;
${blockText(spec)}
  let weight = (b[n * u.bytes + k * ${bits}u / 8u] >> (k * ${bits}u % 8u)) & ${2 ** bits - 1}u;
  return (f32(weight) - zero) * scale;
}
${linearMain(`  let at = i * ${lanes}u;
  y[i] = ${stored(result, lanes, `${laneType('f32', lanes)}(${each.join(', ')})`)};`)}`;
  },
};

interface Attributes {
  readonly k: number;
  readonly n: number;
  readonly bits: number;
  readonly block: number;
}

/** Rows from which unpacking all weights pays. */
const MANY_ROWS = 16;

function resolve(ctx: Context, { k, n, bits, block }: Attributes): void {
  const [a, b, scales, zeros, bias] = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.inputs[3], ctx.inputs[5]];
  const blocks = Math.ceil(k / block);
  const bytes = (blocks * block * bits) / 8;
  if (a.dims[a.dims.length - 1] !== k || b.size !== n * bytes || scales.size !== n * blocks) {
    throw new KernelError(
      `MatMulNBits of [${a.dims}] with weights [${b.dims}] and scales [${scales.dims}] ` +
        `for K = ${k} and N = ${n} in blocks of ${block}`,
    );
  }
  const y = ctx.output(0, [...a.dims.slice(0, -1), n]);
  if (y.size === 0) return;
  const m = a.size / k;
  const packed: Packed = {
    bits,
    storage: scales.storage,
    zeros: !zeros ? 'middle' : zeros.storage === 'u32' ? 'packed' : 'float',
  };
  const inputs = { scales, ...(zeros && { zeros }) };
  const sizes = { k, n, blocks, block, zero_bytes: Math.ceil((blocks * bits) / 8) };
  if (m >= MANY_ROWS) {
    const transposed = readsTransposed(ctx, m, k);
    const matrix = ctx.temp(transposed ? [n, k] : [k, n], a.dtype);
    const lanes = (transposed ? k : n) % 4 === 0 ? 4 : 1;
    const count = matrix.size / lanes;
    ctx.dispatch({
      shader: UNPACK,
      spec: { ...packed, transposed, lanes, result: matrix.storage },
      inputs: { b, ...inputs },
      outputs: { y: inLanes(matrix, lanes) },
      uniforms: { count, bytes, ...sizes },
      workgroups: linearWorkgroups(count, ctx.device),
    });
    multiply(ctx, {
      left: 'matrix',
      a,
      b: matrix,
      y,
      m,
      n,
      depth: k,
      taps: 1,
      z: 1,
      lda: k,
      ldb: transposed ? k : n,
      ldy: n,
      bias,
      transposed,
    });
    return;
  }
  const rows = m === 1 ? 1 : 4;
  const count = Math.ceil(m / rows) * n;
  const steps = bytes / 4;
  const team = teamSize(count, steps, ctx.device);
  const whole = k % (32 / bits) === 0;
  ctx.dispatch({
    shader: FEW,
    spec: { ...packed, rows, whole, team, bias: bias !== undefined, result: y.storage },
    inputs: { a: inLanes(a, whole ? 4 : 1), b: inLanes(b, 4), ...inputs, ...(bias && { bias }) },
    outputs: { y },
    uniforms: { count, m, steps, ...sizes },
    workgroups: teamWorkgroups(count, team, ctx.device),
  });
}

const matMulNBits: Kernel<Attributes> = {
  op: 'MatMulNBits',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS, ['uint8'], FLOATS, ['uint8', ...FLOATS], ['int32'], FLOATS],
  requires: [
    { attribute: 'bits', values: [2, 4, 8], otherwise: 'other bits than 2, 4 and 8' },
    { noInput: 4, otherwise: 'groups by index (g_idx)' },
  ],
  attributes: (a) => ({
    k: a.integer('K', 0),
    n: a.integer('N', 0),
    bits: a.integer('bits', 4),
    block: a.integer('block_size', 0),
  }),
  resolve,
};

export default [matMulNBits];
