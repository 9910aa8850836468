// 3x3 convolution with stride 1 by Winograd's F(4x4, 3x3), with a quarter of the multiplications, where that costs
// less. For software adapters, which have few of them; a GPU has more to lose by what must be kept in between. Not
// where compilation is slow: on lavapipe runs would gain 6 %, and the first one take seconds longer.
import { DType } from '../../../../../schema';
import type { Context, DeviceTraits } from '../../../../../contract/kernel';
import { EPILOGUE_F32, epilogueUniforms, shared } from '../../../wgsl/epilogue';
import { linearWorkgroups } from '../../../wgsl/linear';
import { softwareTile, stepCost, type Tile, windowsCost } from '../../matmul/product/software_tile';
import type { ChannelsLast } from '../operands';
import { POINTS, TILE, transformedWeights, winogradOfTiles } from './winograd_text';

/** Tiles of 4x4 outputs, and groups of 4 output channels, of a thread. */
const BLOCK: Tile = { rows: 4, columns: 4 };
/** Of a workgroup: those of a subgroup, so that few tiles keep none idle. */
const THREADS = 4;
/**
 * Nanoseconds of a processor, measured on SwiftShader: transforms of a tile of 4 channels into 36 points, of the
 * products there into outputs, and of the weights of one channel for 4 outputs.
 */
const TO_POINTS = 1900;
const TO_OUTPUTS = 1700;
const OF_WEIGHTS = 1100;
/** Workgroups that run at the same time, about. */
const AT_ONCE = 4;
/** Workgroups side by side at most; what each keeps between its transforms it uses again for its next tiles. */
const MOST_WORKGROUPS = 32;
/** Nanoseconds that must be gained in a run: there are two shaders more to compile, and a launch. */
const LEAST_GAIN = 1e6;

interface Convolved {
  readonly images: number;
  readonly channels: number;
  readonly outputs: number;
  readonly output: readonly number[];
}

/** How the work is shared out. */
interface Shares {
  /** Workgroups side by side, and blocks of tiles that the threads of each do in turn. */
  readonly across: number;
  readonly turns: number;
  /** Parts of the output channels: each transforms the input for itself. */
  readonly parts: number;
  /** Column blocks of a part. */
  readonly columnBlocks: number;
  /** Nanoseconds, without the weights. */
  readonly cost: number;
}

/**
 * Whether Winograd's way costs less than the product over windows. The weights' transform counts too: a run does it
 * where there is no memory to keep so much (device/fixed_part.ts), and the first run always does.
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

/** Elements that threads keep: the points of their block of tiles in all channels, and products there. */
function scratchSize({ across, parts }: Shares, channels: number): number {
  return across * parts * THREADS * POINTS * BLOCK.rows * (channels + 4 * BLOCK.columns);
}

/** Parts of the output channels keep more processors busy where tiles are few. */
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
  // Few shaders: compilation is dear, and an epilogue's form is nothing beside the rest.
  const epilogue = shared(given);
  const images = x.dims[0];
  const channels = from.count;
  const outputs = w.dims[3];
  const [down, across] = geometry.output.map(tilesAlong);
  const vec = 4 as const;
  // In float32 whatever x is: the sums cancel each other out.
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
    // What is not there is never read, but something must be bound.
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
