// com.microsoft's MatMulNBits: a product with weights of 2, 4 or 8 bits, in blocks of k with one scale and zero point
// each. Few rows are multiplied while the weights are unpacked. For more rows, the weights are unpacked first, and it
// is an ordinary product, or a product of bytes on GPUs that multiply these, if the rows are rounded to 8 bits. Passes
// add to it (py_ort/ir/block_products.py): that rounding, a normalization of its rows (input 6), an epilogue, a gate
// that halves its columns, and a residual (input 7). If another kernel wrote the rows as bytes too, these are input 8,
// and input 9 has their scales and zero points, as in ByteFactors.
import {
  type Binding,
  type Context,
  type Kernel,
  MICROSOFT_DOMAIN,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  FLOATS,
  inLanes,
  type Lanes,
  laneType,
  linearMain,
  linearWorkgroups,
  load,
  stored,
  teamWorkgroups,
} from '../../wgsl';
import {
  ended,
  EPILOGUE_F32,
  epilogueText,
  epilogueUniforms,
  readEpilogue,
  readsResidual,
  residualLast,
} from '../../wgsl/epilogue';
import type { Instruction, Program } from '../../wgsl/program';
import type { ByteFactors } from '../matmul/product/bytes';
import { multipliesBytes, multiply, readsTransposed } from '../matmul/product/multiply';
import type { Product } from '../matmul/product/product';
import { columnsOf } from '../shared/columns';
import { rootMeanSquare } from '../normalization/layer_normalization';
import { blockRows, blockWeights, MOST_IN_BLOCK } from './blocks/byte_blocks';
import { byteRows, type ByteSteps, readSteps } from './blocks/byte_rows';
import { type ByteBlocks, wordsOfBlocks } from './blocks/byte_weights';
import type { Packed } from './blocks/few_bits';
import { FEW_ROWS } from './blocks/few_rows';
import { sharesOf } from './blocks/shares';
import { UNPACK } from './blocks/unpack';
import { fakeQuantized } from './quantize_linear';
import { Dialect, Place } from '../../../../schema/dialect';

interface BlockAttributes {
  readonly k: number;
  readonly n: number;
  readonly bits: number;
  readonly block: number;
  /** For the normalization, if input 6 is its scale. */
  readonly epsilon: number;
  readonly gate?: Program;
  readonly epilogue?: Program;
  /** The precision of rows: 0, 1: float32; 2: float16; 4: int8. */
  readonly accuracy: number;
  /**
   * The 8-bit steps in which rows are, or to which they are to be rounded as by DynamicQuantizeLinear. Each column then
   * has one scale and zero point.
   */
  readonly steps?: ByteSteps;
}

/** A call, checked. */
interface BlockProduct extends BlockAttributes {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly bias?: Tensor;
  readonly norm?: Tensor;
  readonly residual?: Tensor;
  readonly y: Tensor;
  readonly m: number;
  /** Columns of y. */
  readonly width: number;
  readonly packed: Packed;
  readonly inputs: { readonly [name: string]: Binding };
  readonly sizes: { readonly blocks: number; readonly block: number; readonly zero_bytes: number; readonly k: number };
}

/** A value of accuracy_level. */
const INT8 = 4;
/** Rows from which unpacking all weights is faster. */
const MANY_ROWS = 16;

function resolve(ctx: Context, attributes: BlockAttributes): void {
  const { k, n, bits, block, gate } = attributes;
  const [a, b, scales, zeros, bias] = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.inputs[3], ctx.inputs[5]];
  const [norm, residual] = [ctx.inputs[Place.NBITS_NORM], ctx.inputs[Place.NBITS_RESIDUAL]];
  const blocks = Math.ceil(k / block);
  if (
    a.dims[a.dims.length - 1] !== k ||
    b.size !== (n * blocks * block * bits) / 8 ||
    scales.size !== n * blocks ||
    (norm && norm.size !== k) ||
    (bias && bias.size !== n) ||
    (zeros && zeros.size !== n * (zeros.storage === 'u32' ? Math.ceil((blocks * bits) / 8) : blocks))
  ) {
    throw new KernelError(
      `MatMulNBits of [${a.dims}] with weights [${b.dims}] and scales [${scales.dims}] ` +
        `for K = ${k} and N = ${n} in blocks of ${block}`,
    );
  }
  if (gate && attributes.epilogue) throw new KernelError('MatMulNBits ends in a gate or in an epilogue, not in both');
  const width = gate ? n / 2 : n;
  const y = ctx.output(0, [...a.dims.slice(0, -1), width]);
  if (residual && residual.size !== y.size)
    throw new KernelError(
      `MatMulNBits: the residual [${residual.dims}] must have the elements of the result [${y.dims}]`,
    );
  if (y.size === 0) return;
  const m = a.size / k;
  const packed: Packed = {
    bits,
    storage: scales.storage,
    zeros: !zeros ? 'middle' : zeros.storage === 'u32' ? 'packed' : 'float',
  };
  const given: BlockProduct = {
    ...attributes,
    ...{ a, b, bias, norm, residual, y, m, width, packed },
    inputs: { scales, ...(zeros && { zeros }) },
    sizes: { k, blocks, block, zero_bytes: Math.ceil((blocks * bits) / 8) },
  };
  const { steps } = attributes;
  if (steps && takesBytes(ctx, given)) return ofBytes(ctx, given, steps);
  const product = steps === 'dynamic' ? { ...given, a: fakeQuantized(ctx, a) } : given;
  if (m >= MANY_ROWS || ctx.device.ownElement) manyRows(ctx, product);
  else fewRows(ctx, product);
}

/** The product of many rows with weights that are [k, n], or [n, k]. */
function wholeProduct(
  { a, bias, residual, epilogue, y, m, n, k }: BlockProduct,
  b: Tensor,
  transposed = false,
): Product {
  return {
    left: 'matrix',
    ...{ a, b, y, bias, residual, transposed, m, n, depth: k, taps: 1, z: 1, lda: k, ldb: transposed ? k : n, ldy: n },
    epilogue: residual && !readsResidual(epilogue?.instructions) ? residualLast(epilogue) : epilogue,
  };
}

function takesBytes(ctx: Context, p: BlockProduct): boolean {
  const whole = p.packed.bits === 8 && p.packed.zeros !== 'float' && p.m >= MANY_ROWS;
  return whole && multipliesBytes(ctx, wholeProduct(p, p.b));
}

function ofBytes(ctx: Context, p: BlockProduct, steps: ByteSteps): void {
  const shifted = p.packed.zeros !== 'middle';
  const [words, row] = [ctx.inputs[Place.NBITS_WORDS], ctx.inputs[Place.NBITS_STEPS]];
  const { words: a, rows } =
    words && words.size > 0 ? { words, rows: row! } : byteRows(ctx, p.a, columnsOf(p.a), steps, shifted);
  const { words: b, columns } = wordsOfBlocks(ctx, blocksOf(p), p.k, p.n);
  multiplyBytes(ctx, p, a, b, { rows, columns, shifted });
}

/** True if rows are to be rounded to 8 bits, block by block, and their bytes can be multiplied. */
function takesBlocks(ctx: Context, p: BlockProduct): boolean {
  const { accuracy, bits, block, k, packed } = p;
  // otherwise weights may exceed bytes
  const zeros = packed.zeros === 'middle' || (packed.zeros === 'packed' && bits < 8);
  const fits = block >= 32 && MOST_IN_BLOCK % block === 0;
  const whole = accuracy === INT8 && zeros && fits && k % block === 0;
  return whole && !ctx.device.subgroupMatrix && multipliesBytes(ctx, wholeProduct(p, p.b));
}

function ofBlocks(ctx: Context, p: BlockProduct): void {
  const { words: a, scales: rows } = blockRows(ctx, p.a, p.k, p.block);
  const { words: b, scales: columns } = blockWeights(ctx, blocksOf(p), p);
  multiplyBytes(ctx, p, a, b, { rows, columns, shifted: false, block: p.block });
}

function blocksOf({ b, packed, inputs, sizes }: BlockProduct): ByteBlocks {
  return { words: inWords(b), packed, inputs, sizes };
}

function multiplyBytes(ctx: Context, p: BlockProduct, a: Tensor, b: Tensor, bytes: ByteFactors): void {
  withGate(ctx, p, (y) => multiply(ctx, { ...wholeProduct({ ...p, a, y }, b), bytes }));
}

function fewRows(ctx: Context, p: BlockProduct): void {
  const { a, b, bias, norm, residual, y, m, n, k, bits, block, width, gate, packed } = p;
  const program = gate ?? p.epilogue;
  const words = Math.min(4, (block * bits) / 32) as 1 | 2 | 4;
  const perLoad = (words * 32) / bits;
  const loads = Math.ceil(k / perLoad);
  const shares = sharesOf(m, width, loads, gate !== undefined, ctx.device);
  const whole = k % perLoad === 0;
  const groups = Math.ceil(width / shares.columns);
  const count = groups * Math.ceil(m / shares.rows);
  ctx.dispatch({
    shader: FEW_ROWS,
    spec: {
      ...packed,
      ...shares,
      // Near 1024, fractional zero points would be rounded.
      halves: shares.halves && packed.zeros !== 'float',
      words,
      whole,
      norm: norm?.storage,
      gate: gate !== undefined,
      epilogue: program?.instructions,
      bias: bias !== undefined,
      residual: residual !== undefined,
      result: y.storage,
    },
    inputs: {
      a: inLanes(a, whole ? 4 : 1),
      b: { tensor: inWords(b), vec: words },
      ...p.inputs,
      ...(norm && { norm: inLanes(norm, whole ? 4 : 1) }),
      ...(bias && { bias }),
      ...(residual && { residual }),
    },
    outputs: { y },
    // The thread that reads a number writes the sum to its place.
    inPlace: { residual: 'y' },
    uniforms: {
      ...p.sizes,
      ...{ count, m, width, groups, loads, steps: b.size / n / 4 / words },
      ...(norm && { epsilon: p.epsilon }),
      ...epilogueUniforms(program),
    },
    f32: ['epsilon', ...EPILOGUE_F32],
    workgroups: teamWorkgroups(count, shares.team, ctx.device),
  });
}

/** Bytes four at a time, in memory order. */
function inWords(bytes: Tensor): Tensor {
  const size = bytes.size / 4;
  const start = bytes.start === undefined ? undefined : bytes.start / 4;
  return { ...bytes, dtype: DType.uint32, storage: 'u32', packing: undefined, size, dims: [size], start };
}

function manyRows(ctx: Context, p: BlockProduct): void {
  const { m, n, k, bits, packed } = p;
  const a = p.norm ? ctx.temp([m, k], p.a.dtype) : p.a;
  if (p.norm) rootMeanSquare(ctx, { x: p.a, y: a, scale: p.norm, rows: m, length: k, epsilon: p.epsilon });
  if (takesBlocks(ctx, p)) return ofBlocks(ctx, { ...p, a });
  const transposed = readsTransposed(ctx, m, k);
  // Weights of bytes are those of encoders, whose every run has many rows; a decoder has many rows only once, and is
  // large. Rows that may be rounded to 8 bits may be rounded to 11 as well.
  const halves = p.accuracy >= 2 && ctx.device.subgroupMatrix !== undefined;
  const matrix = ctx.temp(
    transposed ? [n, k] : [k, n],
    halves ? DType.float16 : p.a.dtype,
    bits === 8 || m < MANY_ROWS,
  );
  const lanes = (transposed ? k : n) % 4 === 0 ? 4 : 1;
  const count = matrix.size / lanes;
  ctx.dispatch({
    shader: UNPACK,
    spec: { ...packed, transposed, lanes, result: matrix.storage },
    inputs: { b: p.b, ...p.inputs },
    outputs: { y: inLanes(matrix, lanes) },
    uniforms: { count, n, bytes: p.b.size / n, ...p.sizes },
    workgroups: linearWorkgroups(count, ctx.device),
  });
  withGate(ctx, p, (product) =>
    multiply(ctx, { ...wholeProduct({ ...p, a, y: product }, matrix, transposed), halves }),
  );
}

interface GateSpec extends Spec {
  readonly gate: readonly Instruction[];
  readonly lanes: Lanes;
  readonly storage: StorageType;
}

const GATED: Shader<GateSpec> = {
  name: 'matmul_nbits__gate',
  wgsl: ({ gate, lanes, storage }) => `${epilogueText(gate, lanes)}
${linearMain(`  let at = i / u.width * 2u * u.width + i % u.width;
  let value = ${ended(gate, load(storage, lanes, 'x[at]'))} * ${load(storage, lanes, 'x[at + u.width]')};
  y[i] = ${stored(storage, lanes, `${laneType('f32', lanes)}(value)`)};`)}`,
};

/** With a gate, columns of the first half go through its function, and are multiplied by those of the second. */
function withGate(ctx: Context, { m, n, gate, y, width }: BlockProduct, multiplied: (y: Tensor) => void): void {
  if (!gate) return multiplied(y);
  const x = ctx.temp([m, n], y.dtype);
  multiplied(x);
  const lanes = width % 4 === 0 ? 4 : 1;
  const count = y.size / lanes;
  ctx.dispatch({
    shader: GATED,
    spec: { gate: gate.instructions, lanes, storage: y.storage },
    inputs: { x: inLanes(x, lanes) },
    outputs: { y: inLanes(y, lanes) },
    uniforms: { count, width: width / lanes, ...epilogueUniforms(gate) },
    f32: EPILOGUE_F32,
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

const matMulNBits: Kernel<BlockAttributes> = {
  op: 'MatMulNBits',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS, ['uint8'], FLOATS, ['uint8', ...FLOATS], ['int32'], FLOATS],
  requires: [
    { attribute: 'bits', values: [2, 4, 8], otherwise: 'other bits than 2, 4 and 8' },
    { noInput: 4, otherwise: 'groups by index (g_idx)' },
  ],
  features: ['bytes', 'norm', 'epilogue', 'steps', 'gate', 'residual'],
  attributes: (a) => ({
    k: a.integer('K', 0),
    n: a.integer('N', 0),
    bits: a.integer('bits', 4),
    block: a.integer('block_size', 0),
    accuracy: a.integer('accuracy_level', 0),
    steps: readSteps(a),
    epsilon: a.number(Dialect.NORM_EPSILON, 0),
    gate: readEpilogue(a, Dialect.GATE),
    epilogue: readEpilogue(a),
  }),
  resolve,
};

export default [matMulNBits];
