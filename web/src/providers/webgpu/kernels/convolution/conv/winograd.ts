// 3x3 convolution with stride 1 by Winograd's F(4x4, 3x3), with a quarter of the multiplications, where that is faster.
// For software adapters, on which multiplications are expensive. A GPU would lose more by storing intermediate values.
// Not where compilation is slow: on lavapipe runs would be 6 % faster, and the first one seconds slower.
import { DType } from '../../../../../schema';
import type { Context, DeviceTraits } from '../../../../../contract/kernel';
import { EPILOGUE_F32, epilogueUniforms, shared } from '../../../wgsl/epilogue';
import { linearWorkgroups } from '../../../wgsl/linear';
import { softwareTile, stepCost, type Tile, windowsCost } from '../../matmul/product/software_tile';
import type { ChannelsLast } from '../operands';
import { POINTS, TILE, transformedWeights, winogradOfTiles } from './winograd_text';

/** Tiles of 4x4 outputs, and groups of 4 output channels, of a thread. */
const BLOCK: Tile = { rows: 4, columns: 4 };
/** Threads of a workgroup: a subgroup's, so that none is idle with few tiles. */
const THREADS = 4;
/**
 * Nanoseconds of a processor, measured on SwiftShader: transforms of a tile of 4 channels into 36 points, of the
 * products into outputs, and of one channel's weights for 4 outputs.
 */
const TO_POINTS = 1900;
const TO_OUTPUTS = 1700;
const OF_WEIGHTS = 1100;
/** Approximate number of workgroups that run at the same time. */
const AT_ONCE = 4;
/** The most workgroups side by side; each reuses its memory between its transforms for its next tiles. */
const MOST_WORKGROUPS = 32;
/** The least gain in a run, in nanoseconds: there are two more shaders to compile, and one more dispatch. */
const LEAST_GAIN = 1e6;

interface Convolved {
  readonly images: number;
  readonly channels: number;
  readonly outputs: number;
  readonly output: readonly number[];
}

/** The distribution of the work. */
interface Shares {
  /** Workgroups side by side, and blocks of tiles that the threads of each compute in turn. */
  readonly across: number;
  readonly turns: number;
  /** Parts of the output channels: each transforms the input again. */
  readonly parts: number;
  /** Column blocks of a part. */
  readonly columnBlocks: number;
  /** Nanoseconds, without the weights. */
  readonly cost: number;
}

/**
 * True if Winograd's algorithm is faster than the product over windows. The weights' transform counts too: each run
 * repeats it if there is no memory to keep the result (device/fixed_part.ts), and the first run always does it.
 */
export function suitsWinograd(
  ctx: Context,
  { x, w, geometry: { kernel, strides, dilations, output }, columns }: ChannelsLast,
): boolean {
  const [, , channels, outputs] = w.dims;
  const images = x.dims[0];
  const every = (numbers: readonly number[], wanted: number) => numbers.every((number) => number === wanted);
  if (
    !ctx.device.software ||
    ctx.device.slowCompiler ||
    w.storage !== 'f32' ||
    !every(kernel, 3) ||
    !every([...strides, ...dilations], 1)
  )
    return false;
  const inFours = [columns.x, columns.y, columns.residual ?? columns.y].flatMap(({ pitch, first }) => [pitch, first]);
  if ([channels, outputs, ...inFours].some((number) => number % 4 !== 0)) return false;
  const convolved = { images, channels, outputs, output };
  const shares = shareOut(convolved, ctx.device);
  if (4 * Math.max(POINTS * channels * outputs, scratchSize(shares, channels)) > ctx.device.maxStorageBindingSize)
    return false;
  const weights = ((channels * outputs) / 4) * OF_WEIGHTS;
  const pixels = images * output[0] * output[1];
  const windows = windowsCost(softwareTile({ m: pixels, n: outputs }, false, ctx.device), 9, channels);
  return shares.cost + weights + LEAST_GAIN < windows;
}

/** Elements that threads store: the points of their block of tiles in all channels, and the products. */
function scratchSize({ across, parts }: Shares, channels: number): number {
  return across * parts * THREADS * POINTS * BLOCK.rows * (channels + 4 * BLOCK.columns);
}

/** Parts of the output channels occupy more processors if there are few tiles. */
function shareOut({ images, channels, outputs, output }: Convolved, device: DeviceTraits): Shares {
  const blocks = Math.ceil((images * tilesAlong(output[0]) * tilesAlong(output[1])) / BLOCK.rows);
  const groups = Math.ceil(blocks / THREADS);
  const columns = Math.ceil(outputs / 4 / BLOCK.columns);
  const turns = Math.ceil(groups / MOST_WORKGROUPS);
  const across = Math.ceil(groups / turns);
  const step = stepCost(BLOCK, device.subgroups);
  let best: Shares | undefined;
  for (let parts = 1; parts <= Math.min(columns, 2 * AT_ONCE); parts++) {
    const columnBlocks = Math.ceil(columns / parts);
    const block =
      BLOCK.rows * (channels / 4) * TO_POINTS +
      columnBlocks * (POINTS * (channels / 4) * step + BLOCK.rows * BLOCK.columns * TO_OUTPUTS);
    const cost = Math.ceil((across * parts) / AT_ONCE) * AT_ONCE * turns * THREADS * block;
    if (!best || cost < best.cost) best = { across, turns, parts, columnBlocks, cost };
  }
  return best!;
}

function tilesAlong(size: number): number {
  return Math.ceil(size / TILE);
}

/** w is [3, 3, channels, outputs]. */
export function winograd(
  ctx: Context,
  {
    x,
    w,
    y,
    bias,
    residual,
    epilogue: given,
    geometry,
    columns: { x: from, y: to, residual: added = to },
  }: ChannelsLast,
): void {
  const { device } = ctx;
  // Few shaders: compilation is slow, and the form of an epilogue hardly matters.
  const epilogue = shared(given);
  const images = x.dims[0];
  const channels = from.count;
  const outputs = w.dims[3];
  const [down, across] = geometry.output.map(tilesAlong);
  const vec = 4 as const;
  // In float32 for any type of x: the terms of sums cancel each other out.
  const weights = ctx.temp([POINTS, channels, outputs], DType.float32, true);
  const pairs = (channels * outputs) / vec;
  ctx.dispatch({
    shader: transformedWeights,
    spec: {},
    inputs: { w: { tensor: w, vec } },
    outputs: { y: { tensor: weights, vec } },
    uniforms: { count: pairs, tile: 6, kernel: 3 },
    workgroups: linearWorkgroups(pairs, device),
  });
  const shares = shareOut({ images, channels, outputs, output: geometry.output }, device);
  const scratch = ctx.temp([scratchSize(shares, channels)], DType.float32);
  const inputIn = x.id === y.id ? 'y' : 'x';
  const residualIn = residual?.id === y.id ? 'y' : 'residual';
  ctx.dispatch({
    shader: winogradOfTiles,
    spec: {
      ...BLOCK,
      threads: THREADS,
      share: device.subgroups,
      epilogue: epilogue.instructions,
      storage: y.storage,
      inputIn,
      residualIn,
    },
    // A missing operand is never read, but something must be bound.
    inputs: {
      ...(inputIn === 'x' && { x: { tensor: x, vec } }),
      v: { tensor: weights, vec },
      bias: { tensor: bias ?? w, vec },
      ...(residualIn === 'residual' && { residual: { tensor: residual ?? w, vec } }),
    },
    outputs: { y: { tensor: y, vec }, scratch: { tensor: scratch, vec } },
    inPlace: residual && added.pitch === to.pitch && added.first === to.first ? { residual: 'y' } : undefined,
    uniforms: {
      channels: channels / vec,
      outputs: outputs / vec,
      tiles: images * down * across,
      down,
      across,
      turns: shares.turns,
      column_blocks: shares.columnBlocks,
      in_h: geometry.input[0],
      in_w: geometry.input[1],
      out_h: geometry.output[0],
      out_w: geometry.output[1],
      pad_top: geometry.begins[0],
      pad_left: geometry.begins[1],
      x_pitch: from.pitch / vec,
      x_first: from.first / vec,
      y_pitch: to.pitch / vec,
      y_first: to.first / vec,
      residual_pitch: added.pitch / vec,
      residual_first: added.first / vec,
      ...epilogueUniforms(epilogue),
      has_bias: bias ? 1 : 0,
      has_residual: residual ? 1 : 0,
      tile: 6,
      made: TILE,
      points: POINTS,
      rows: BLOCK.rows,
      sums: BLOCK.rows * BLOCK.columns,
    },
    f32: EPILOGUE_F32,
    workgroups: [shares.across, shares.parts, 1],
  });
}
