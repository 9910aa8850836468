// com.microsoft's MatMulNBits: a product with weights of 2, 4 or 8 bits, in blocks of k with one scale and zero point each.
// Few rows are multiplied while the weights are unpacked; for more, the weights are unpacked first, and it is a product like others.
import { type Context, type Kernel, MICROSOFT_DOMAIN, KernelError, type Shader, type Spec, type StorageType } from '../jsep/kernel';
import { FLOATS, inLanes, type Lanes, laneType, linearMain, linearWorkgroups, load, stored, teamMain, teamSize, teamWorkgroups } from '../wgsl';
import { multiply, readsTurned } from './product/multiply';

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
  readonly team: number;
  readonly bias: boolean;
  readonly result: StorageType;
}

// A step is 4 bytes of a column: its weights are of one block.
const FEW: Shader<FewSpec> = {
  name: 'matmul_nbits__few',
  wgsl(spec) {
    const { bits, rows, team, bias, result } = spec;
    const each = 8 / bits;
    const all = Array.from({ length: rows }, (_, row) => row);
    const type = rows === 4 ? 'vec4<f32>' : 'f32';
    const values = (k: string) => (rows === 4 ? `vec4(${all.map((row) => `f32(a[row_${row} + ${k}])`).join(', ')})` : `f32(a[row_0 + ${k}])`);
    const weights = Array.from({ length: 4 * each }, (_, i) => {
      const weight = `(f32((bytes[${Math.floor(i / each)}] >> ${(i % each) * bits}u) & ${2 ** bits - 1}u) - zero) * scale`;
      return `    if (k + ${i}u < u.k) { sum += ${values(`k + ${i}u`)} * (${weight}); }`;
    });
    return teamMain({
      team, neighbours: false,
      accumulators: [{ name: 'sum', type, start: `${type}(0.0)` }],
      prepare: `  let n = o % u.n;
  let row = o / u.n * ${rows}u;
${all.map((i) => `  let row_${i} = min(row + ${i}u, u.m - 1u) * u.k;`).join('\n')}
  let first = 0u;
  let end = u.steps;`,
      step: `    let bytes = b[n * u.steps + r];
    let k = r * ${4 * each}u;
    let block = k / u.block;
${blockText(spec)}
${weights.join('\n')}`,
      merge: '      sum += other_sum;',
      finish: all.map((i) => {
        const value = `sum${rows === 4 ? `[${i}]` : ''}${bias ? ' + f32(bias[n])' : ''}`;
        return `    if (row + ${i}u < u.m) { y[(row + ${i}u) * u.n + n] = ${stored(result, 1, value)}; }`;
      }).join('\n'),
    });
  },
};

interface UnpackSpec extends Spec, Packed {
  /** Whether the matrix is [n, k]; else [k, n]. */
  readonly turned: boolean;
  readonly lanes: Lanes;
  readonly result: StorageType;
}

const UNPACK: Shader<UnpackSpec> = {
  name: 'matmul_nbits__unpack',
  wgsl(spec) {
    const { bits, turned, lanes, result } = spec;
    const each = Array.from({ length: lanes }, (_, t) => (turned ? `unpacked(at / u.k, at % u.k + ${t}u)` : `unpacked(at % u.n + ${t}u, at / u.n)`));
    return `
fn unpacked(n: u32, k: u32) -> f32 {
  let block = k / u.block;
${blockText(spec)}
  let weight = (b[n * u.bytes + k * ${bits}u / 8u] >> (k * ${bits}u % 8u)) & ${2 ** bits - 1}u;
  return (f32(weight) - zero) * scale;
}
${linearMain(`  let at = i * ${lanes}u;\n  y[i] = ${stored(result, lanes, `${laneType('f32', lanes)}(${each.join(', ')})`)};`)}`;
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
    throw new KernelError(`MatMulNBits of [${a.dims}] with weights [${b.dims}] and scales [${scales.dims}] for K = ${k} and N = ${n} in blocks of ${block}`);
  }
  const y = ctx.output(0, [...a.dims.slice(0, -1), n]);
  if (y.size === 0) return;
  const m = a.size / k;
  const packed: Packed = { bits, storage: scales.storage, zeros: !zeros ? 'middle' : zeros.storage === 'u32' ? 'packed' : 'float' };
  const inputs = { scales, ...(zeros && { zeros }) };
  const sizes = { k, n, blocks, block, zero_bytes: Math.ceil((blocks * bits) / 8) };
  if (m >= MANY_ROWS) {
    const turned = readsTurned(ctx, m, k);
    const matrix = ctx.temp(turned ? [n, k] : [k, n], a.dtype);
    const lanes = (turned ? k : n) % 4 === 0 ? 4 : 1;
    const count = matrix.size / lanes;
    ctx.dispatch({
      shader: UNPACK, spec: { ...packed, turned, lanes, result: matrix.storage }, inputs: { b, ...inputs }, outputs: { y: inLanes(matrix, lanes) },
      uniforms: { count, bytes, ...sizes }, workgroups: linearWorkgroups(count, ctx.device),
    });
    multiply(ctx, { left: 'matrix', a, b: matrix, y, m, n, depth: k, taps: 1, z: 1, lda: k, ldb: turned ? k : n, ldy: n, bias, turned });
    return;
  }
  const rows = m === 1 ? 1 : 4;
  const count = Math.ceil(m / rows) * n;
  const steps = bytes / 4;
  const team = teamSize(count, steps, ctx.device);
  ctx.dispatch({
    shader: FEW, spec: { ...packed, rows, team, bias: bias !== undefined, result: y.storage },
    inputs: { a, b: inLanes(b, 4), ...inputs, ...(bias && { bias }) }, outputs: { y }, uniforms: { count, m, steps, ...sizes },
    workgroups: teamWorkgroups(count, team, ctx.device),
  });
}

const matMulNBits: Kernel<Attributes> = {
  op: 'MatMulNBits', domain: MICROSOFT_DOMAIN,
  types: [FLOATS, ['uint8'], FLOATS, ['uint8', ...FLOATS], ['int32'], FLOATS],
  requires: [{ attribute: 'bits', values: [2, 4, 8], otherwise: 'other bits than 2, 4 and 8' }, { noInput: 4, otherwise: 'groups by index (g_idx)' }],
  attributes: (a) => ({ k: a.integer('K', 0), n: a.integer('N', 0), bits: a.integer('bits', 4), block: a.integer('block_size', 0) }),
  resolve,
};

export default [matMulNBits];
