// Chooses the form of a product, and dispatches it.
import { DType } from '../../../../../schema';
import type { Context, DeviceTraits, Dispatch, Shader, Tiling, Uniforms } from '../../../../../contract/kernel';
import { readsResidual, shared } from '../../../wgsl/epilogue';
import { inLanes } from '../../../wgsl/lanes';
import { bindsWhole } from '../../../wgsl/large';
import { linearWorkgroups } from '../../../wgsl/linear';
import { ending } from './ending';
import { hardwareProduct } from './hardware';
import type { ByteFactors } from './bytes';
import { byteTile, hardwareTile } from './hardware_tile';
import { matrixTile, matrixTileName, matrixTiles } from './matrix_tiles';
import { type SubgroupMatrixSpec, subgroupMatrixProduct } from './subgroup_matrix';
import { bytesPay } from '../../shared/byte_words';
import { multiplyOwnElements } from './own_element';
import { sumOfParts } from './parts';
import { cutProduct } from './parts_of_operands';
import type { Product } from './product';
import { softwareProduct } from './software';
import { SOFTWARE_THREADS, softwareTile, softwareTileName, softwareTiles } from './software_tile';
import type { HardwareSpec, ProductSpec, SoftwareSpec, TiledSpec } from './spec';
import { choiceName, choices, namedTile, type Problem, productKey } from './tiles';
import { columnGroups, vectorProduct } from './vector';

/** True if `multiply` can read a right operand as [n, k], without a transpose. */
export function readsTransposed(ctx: Context, m: number, k: number): boolean {
  return !ctx.device.software && !ctx.device.ownElement && m > FEW_ROWS && k > 0 && k % 4 === 0;
}

/** True if `multiply` accepts operands of bytes: on this device, in fours, with a result that can be bound. */
export function multipliesBytes(ctx: Context, p: Omit<Product, 'bytes'>): boolean {
  const { aVec, bVec } = vectorsOf(p);
  return bytesPay(ctx) && aVec === 4 && bVec === 4 && bindsWhole(p.y, ctx.device);
}

export function multiply(ctx: Context, p: Product): void {
  if (p.y.size === 0) return;
  const cut = p.bytes || (p.parts ?? 1) > 1 ? undefined : cutProduct(ctx, p);
  if (cut) {
    for (const part of cut) multiply(ctx, part);
    return;
  }
  const residual = p.residual && p.residualColumns;
  const scaled = (p.alpha ?? 1) !== 1 || (p.beta ?? 1) !== 1;
  const inPlace = p.a.id === p.y.id;
  const vec = vectorsOf(p);
  const spec: ProductSpec = {
    left: p.left,
    ...vec,
    ...(inPlace && { inPlace }),
    batch: p.batch ?? 0,
    bias: p.bias && (p.biasStrides ? 'any' : 'row'),
    scaled,
    epilogue: p.epilogue?.instructions,
    storage: p.y.storage,
    words: p.words !== undefined,
    ...(residual && { residualColumns: p.residual!.id === p.y.id ? 'y' : 'own' }),
  };
  if (ctx.device.ownElement) multiplyOwnElements(ctx, p, spec);
  else if (p.bytes) ofBytes(ctx, p, spec, p.bytes);
  else if (ctx.device.software) software(ctx, p, spec);
  // A part of a product that was cut may also have few rows, and b's columns in rows.
  else if (p.left === 'matrix' && p.m <= FEW_ROWS && !inPlace && !p.transposed) vector(ctx, p, spec);
  else hardware(ctx, p, spec);
}

/** Elements of a, and of the other operands, that are read at a time. */
function vectorsOf(p: Omit<Product, 'y'> & Partial<Pick<Product, 'y'>>): Pick<ProductSpec, 'aVec' | 'bVec'> {
  const multipleOf4 = (numbers: readonly number[]) => numbers.every((number) => number % 4 === 0);
  const values = (uniforms: Uniforms = {}) => Object.values(uniforms).flat() as number[];
  const aVec = multipleOf4([p.depth, p.lda, p.aFirst ?? 0, ...values(p.strides?.a)]) && p.depth > 0 ? 4 : 1;
  const residual = p.residual && p.residualColumns;
  const rows = [p.ldy, p.yFirst ?? 0, ...(residual ? [residual.pitch, residual.first] : [])];
  const bVec = multipleOf4([p.n, ...(p.transposed ? [] : [p.ldb]), ...rows, ...values(p.strides?.b)]) ? 4 : 1;
  // One tensor has one binding, and therefore one element type.
  return p.a.id === p.y?.id && aVec !== bVec ? { aVec: 1, bVec: 1 } : { aVec, bVec };
}

function outputsOf({ y, words }: Product, bVec: 1 | 4): Dispatch['outputs'] {
  return { y: inLanes(y, bVec), ...(words && { words }) };
}

/** With batch and epilogue in the form of most products: each further form is another shader to compile. */
function asUsual(p: Product): Product {
  const epilogue = shared(p.epilogue);
  if (p.left !== 'matrix' || p.batch) return { ...p, epilogue };
  return {
    ...p,
    epilogue,
    batch: 1,
    strides: { plain: { batch: [1] }, a: { a_batch: [0] }, b: { b_batch: [0], y_batch: [0] } },
  };
}

function software(ctx: Context, given: Product, spec: ProductSpec): void {
  const { bVec } = spec;
  // Stores of single elements, unrolled for a tile, compile slowly everywhere.
  const compact = ctx.device.slowCompiler || bVec === 1;
  const p = compact ? asUsual(given) : given;
  const problem = problemOf(p, spec, ctx.device);
  const tile = softwareTile(p, compact, ctx.device, namedTile(problem, ctx.device));
  const { rows, columns, along } = tile;
  // For a single row only the reads of b matter.
  const aVec = rows === 1 && !spec.inPlace ? 1 : spec.aVec;
  const step = p.left === 'matrix' || p.depth > 3 ? 4 : (Math.max(1, p.depth) as 1 | 2 | 3);
  const full: SoftwareSpec = {
    ...spec,
    aVec,
    rows,
    columns,
    step,
    along,
    batch: p.batch ?? 0,
    epilogue: p.epilogue?.instructions,
    ...(compact && { compact, scaled: true, bias: spec.bias ?? 'row' }),
    tail: aVec === 1 && step === 4,
    share: along === 'rows' && step > 1 && ctx.device.subgroups,
  };
  // A missing operand is never read, but something must be bound.
  const end = ending(
    {
      ...p,
      bias: p.bias ?? (full.bias && p.b),
      residual: p.residual ?? (readsResidual(full.epilogue) ? p.b : undefined),
    },
    full,
  );
  const rowBlocks = Math.ceil(p.m / rows);
  const columnBlocks = Math.ceil(p.n / (4 * columns));
  ctx.dispatch({
    shader: softwareProduct(full),
    spec: full,
    inputs: { ...(!full.inPlace && { a: inLanes(p.a, aVec) }), b: inLanes(p.b, bVec), ...end.inputs },
    inPlace: end.inPlace,
    outputs: outputsOf(p, bVec),
    uniforms: {
      ...end.uniforms,
      ...(compact && {
        has_bias: p.bias ? 1 : 0,
        has_residual: p.residual ? 1 : 0,
        tile_rows: rows,
        tile_columns: columns,
      }),
      depth: p.depth,
      steps: Math.ceil(p.depth / step),
      lda: p.lda / aVec,
      ldb: p.ldb / bVec,
    },
    f32: end.f32,
    workgroups:
      along === 'rows'
        ? [Math.ceil(rowBlocks / SOFTWARE_THREADS), columnBlocks, p.z]
        : [Math.ceil(columnBlocks / SOFTWARE_THREADS), rowBlocks, p.z],
    tiling: ctx.device.tiles && {
      product: productKey(problem),
      tile: softwareTileName(tile),
      choices: () => softwareTiles(compact).map(softwareTileName),
    },
  });
}

/** The facts that determine its tile. */
function problemOf(
  p: Omit<Product, 'y'>,
  { left, aVec, bVec }: Pick<ProductSpec, 'left' | 'aVec' | 'bVec'>,
  { subgroupMatrix }: DeviceTraits,
): Problem {
  const { m, n, depth, taps, z, transposed = false } = p;
  const halves = p.halves || [p.a, p.b].every(({ dtype }) => dtype === DType.float16);
  const problem = { left, m, n, k: depth * taps, z, aVec, bVec, transposed };
  return { ...problem, halves: halves && subgroupMatrix !== undefined };
}

/** The most rows for which only the reads of b matter. */
const FEW_ROWS = 8;

function hardware(ctx: Context, p: Product, spec: ProductSpec): void {
  const problem = problemOf(p, spec, ctx.device);
  if (byMatrices(ctx, p, spec, problem)) return;
  const choice = hardwareTile(problem, ctx.device);
  const full: HardwareSpec = { ...spec, ...choice.tile, split: false, transposed: problem.transposed };
  byTiles(ctx, p, spec, full, hardwareProduct, choice.parts, tilingOf(ctx, problem, choiceName(choice)));
}

function ofBytes(ctx: Context, p: Product, spec: ProductSpec, { shifted, block }: ByteFactors): void {
  const tile = byteTile({ m: p.m, n: p.n, k: p.depth * p.taps }, block !== undefined);
  const bytes = block ? 'blocks' : shifted ? 'shifted' : 'plain';
  const full: HardwareSpec = { ...spec, ...tile, bytes, split: false, transposed: false };
  byTiles(ctx, p, spec, full, hardwareProduct, 1, undefined);
}

/**
 * By tiles of workgroups. Each workgroup may have a part of k: then another dispatch adds up the sums, and ends the
 * product.
 */
function byTiles<S extends TiledSpec>(
  ctx: Context,
  p: Product,
  spec: ProductSpec,
  whole: S,
  shader: (spec: S) => Shader<S>,
  wanted: number,
  tiling: Tiling | undefined,
): void {
  const { tileRows, tileColumns, tileDepth, aVec, bVec, transposed } = whole;
  const totalDepth = p.depth * p.taps;
  const { parts, partDepth } = cutDepth(totalDepth, wanted, tileDepth);
  const wideB = transposed ? 4 : bVec;
  const end = ending(p, whole);
  const workgroups = [Math.ceil(p.m / tileRows), Math.ceil(p.n / tileColumns), p.z * parts] as const;
  const block = p.bytes?.block;
  const common = {
    depth: p.depth,
    total_depth: totalDepth,
    lda: p.lda / aVec,
    ldb: p.ldb / wideB,
    ...(block && { block, blocks: totalDepth / block }),
  };
  const operands = {
    a: inLanes(p.a, p.bytes ? 1 : aVec),
    b: inLanes(p.b, wideB),
    ...(p.bytes && { rows: inLanes(p.bytes.rows, p.bytes.block ? 1 : 4), columns: inLanes(p.bytes.columns, 4) }),
  };
  if (parts === 1) {
    ctx.dispatch({
      shader: shader(whole),
      spec: whole,
      inputs: { ...(whole.inPlace ? { b: operands.b } : operands), ...end.inputs },
      inPlace: end.inPlace,
      outputs: outputsOf(p, bVec),
      uniforms: { ...end.uniforms, ...common },
      f32: end.f32,
      workgroups,
      tiling,
    });
    return;
  }
  const quads = Math.ceil(p.n / 4);
  const left = p.parts === parts;
  const sums = left ? p.y : ctx.temp([p.z * parts, p.m, quads * 4], DType.float32);
  const bare: S = {
    ...whole,
    split: true,
    bias: undefined,
    residualColumns: undefined,
    inPlace: undefined,
    scaled: false,
    epilogue: undefined,
    words: false,
    storage: 'f32',
  };
  ctx.dispatch({
    shader: shader(bare),
    spec: bare,
    inputs: operands,
    outputs: { y: { tensor: sums, vec: bVec } },
    uniforms: {
      ...ending({ ...p, epilogue: undefined }, bare).uniforms,
      ...common,
      parts,
      part_depth: partDepth,
      ld_part: (quads * 4) / bVec,
    },
    workgroups,
    tiling,
  });
  if (left) return;
  ctx.dispatch({
    shader: sumOfParts(spec),
    spec,
    inputs: { parts: { tensor: sums, vec: 4 }, ...end.inputs },
    inPlace: end.inPlace,
    outputs: outputsOf(p, bVec),
    uniforms: { ...end.uniforms, parts, count: p.z * p.m * quads, ...(p.left === 'phases' ? common : {}) },
    f32: end.f32,
    workgroups: linearWorkgroups(p.z * p.m * quads, ctx.device),
    tiling,
  });
}

function cutDepth(depth: number, wanted: number, tileDepth: number): { parts: number; partDepth: number } {
  const partDepth = Math.ceil(depth / wanted / tileDepth) * tileDepth;
  return { parts: Math.max(1, Math.ceil(depth / partDepth)), partDepth };
}

/**
 * The number of parts of k with which `multiply` computes the product of two matrices, given the columns that are read
 * at a time.
 */
export function partsOf(ctx: Context, p: Omit<Product, 'y'>): number {
  const vec = vectorsOf(p);
  const { device } = ctx;
  const problem = problemOf(p, { left: p.left, ...vec }, device);
  const whole = [p.a, p.b].every((tensor) => bindsWhole(tensor, device));
  if (device.software || p.m <= FEW_ROWS || vec.bVec === 1 || !whole) return 1;
  const { tile, parts } = matrixTile(problem, device) ?? hardwareTile(problem, device);
  return cutDepth(p.depth * p.taps, parts, tile.tileDepth).parts;
}

/** A product's facts for a table of tiles, if there is one. */
function tilingOf({ device }: Context, problem: Problem, tile: string): Tiling | undefined {
  if (!device.tiles) return undefined;
  const all = () => [...matrixTiles(problem, device).map(matrixTileName), ...choices(problem, device).map(choiceName)];
  return { product: productKey(problem), tile, choices: all };
}

/** For halves, if the device has matrix units for them; the sums are float32, as everywhere. */
function byMatrices(ctx: Context, p: Product, spec: ProductSpec, problem: Problem): boolean {
  const { subgroupMatrix: matrix } = ctx.device;
  const choice = matrixTile(problem, ctx.device);
  if (!matrix || !choice) return false;
  const { transposed } = problem;
  const stored = [p.a, p.b].every(({ storage }) => storage === 'f16') && spec.aVec === 4 && spec.bVec === 4;
  const full: SubgroupMatrixSpec = { ...spec, ...choice.tile, matrix, stored, split: false, transposed };
  byTiles(ctx, p, spec, full, subgroupMatrixProduct, choice.parts, tilingOf(ctx, problem, matrixTileName(choice)));
  return true;
}

function vector(ctx: Context, p: Product, spec: ProductSpec): void {
  const rows = p.m === 1 ? 1 : 4;
  const across = columnGroups(p.n);
  // Rows of a are read by element: so are their strides.
  const full = { ...spec, aVec: 1 as const, rows, across };
  const end = ending(p, full);
  ctx.dispatch({
    shader: vectorProduct(full),
    spec: full,
    inputs: { a: p.a, b: inLanes(p.b, spec.bVec), ...end.inputs },
    inPlace: end.inPlace,
    outputs: outputsOf(p, spec.bVec),
    uniforms: { ...end.uniforms, total_depth: p.depth * p.taps, lda: p.lda, ldb: p.ldb / spec.bVec },
    f32: end.f32,
    workgroups: [Math.ceil(p.n / (4 * across)), Math.ceil(p.m / rows), p.z],
  });
}
