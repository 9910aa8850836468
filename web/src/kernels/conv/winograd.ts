// 3x3 convolution with stride 1 by Winograd's F(4x4, 3x3): 36 products of matrices for tiles of 4x4 outputs, with a quarter of the
// multiplications. For software adapters, which have few of them; a GPU has more to lose by the dispatches around.
import { DType } from '../../schema';
import type { Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { activated, ACTIVATION_F32, type ActivationKind, activationText, activationUniforms, piecewise } from '../../wgsl/activation';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { ChannelsLast, Geometry } from '../_conv_geometry';
import { multiply } from '../product/multiply';

/** Transforms of the input (transposed), of the weights, of the products (transposed): rows of coefficients. */
const INPUT = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]];
const WEIGHTS = [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]];
const OUTPUT = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]];
const TILE = 4;
const POINTS = 36;
/** Fewer tiles or channels do not pay for the transforms. */
const FEWEST_TILES = 64;
const FEWEST_CHANNELS = 16;

export function suitsWinograd(ctx: Context, images: number, w: Tensor, { kernel, strides, dilations, output }: Geometry): boolean {
  const [, , channels, outputs] = w.dims;
  const every = (numbers: readonly number[], wanted: number) => numbers.every((number) => number === wanted);
  const tiles = Math.ceil(output[0] / TILE) * Math.ceil(output[1] / TILE);
  // What is in between is larger than input and output.
  if (4 * POINTS * images * tiles * Math.max(channels, outputs) > ctx.device.maxStorageBindingSize) return false;
  return ctx.device.software && w.storage === 'f32' && every(kernel, 3) && every(strides, 1) && every(dilations, 1) && channels % 4 === 0 && outputs % 4 === 0
    && Math.min(channels, outputs) >= FEWEST_CHANNELS && tiles >= FEWEST_TILES;
}

/** w is [3, 3, channels, outputs]. */
export function winograd(ctx: Context, { x, w, y, bias, residual, activation: given, geometry, columns: { x: from, y: to, residual: added = to } }: ChannelsLast): void {
  const activation = ctx.device.slowCompiler ? piecewise(given) : given;
  const images = x.dims[0];
  const channels = from.count;
  const outputs = w.dims[3];
  const [down, across] = geometry.output.map((size) => Math.ceil(size / TILE));
  const tiles = images * down * across;
  const places = {
    in_h: geometry.input[0], in_w: geometry.input[1], out_h: geometry.output[0], out_w: geometry.output[1], down, across, tiles,
    pad_top: geometry.begins[0], pad_left: geometry.begins[1],
  };
  // In float32 whatever x is: the sums cancel each other out.
  const transformed = ctx.temp([POINTS, tiles, channels], DType.float32);
  const weights = ctx.temp([POINTS, channels, outputs], DType.float32);
  const products = ctx.temp([POINTS, tiles, outputs], DType.float32);
  const vec = 4 as const;
  const inputs = (tiles * channels) / vec;
  const columns = (channels * outputs) / vec;
  ctx.dispatch({
    shader: FROM_INPUTS, spec: {}, inputs: { x: { tensor: x, vec }, w: { tensor: w, vec } },
    outputs: { y: { tensor: transformed, vec }, v: { tensor: weights, vec } },
    uniforms: { count: inputs + columns, inputs, columns, channels: channels / vec, pitch: from.pitch / vec, first: from.first / vec, ...places, tile: 6, kernel: 3 },
    workgroups: linearWorkgroups(inputs + columns, ctx.device),
  });
  multiply(ctx, {
    left: 'matrix', a: transformed, b: weights, y: products, m: tiles, n: outputs, depth: channels, taps: 1, z: POINTS, lda: channels, ldb: outputs, ldy: outputs,
    batch: 1, strides: { plain: { batch: [POINTS] }, a: { a_batch: [tiles * channels] }, b: { b_batch: [channels * outputs], y_batch: [tiles * outputs] } },
  });
  const sums = (tiles * outputs) / vec;
  const inPlace = residual?.id === y.id;
  ctx.dispatch({
    shader: TO_OUTPUT, spec: { activation: activation?.kind, storage: y.storage, ...(inPlace && { inPlace }) },
    // What is not there is never read, but something must be bound.
    inputs: { p: { tensor: products, vec }, bias: { tensor: bias ?? w, vec }, residual: { tensor: inPlace ? w : residual ?? w, vec } },
    outputs: { y: { tensor: y, vec } },
    inPlace: added.pitch === to.pitch && added.first === to.first ? { residual: 'y' } : undefined,
    uniforms: {
      count: sums, channels: outputs / vec, pitch: to.pitch / vec, first: to.first / vec, residual_pitch: added.pitch / vec, residual_first: added.first / vec,
      ...places, ...activationUniforms(activation), has_bias: bias ? 1 : 0, has_residual: residual ? 1 : 0, tile: 6, made: 4,
    },
    f32: ACTIVATION_F32, workgroups: linearWorkgroups(sums, ctx.device),
  });
}

/** WGSL of a row of coefficients times values: the sum of those that are not 0. */
function combination(row: readonly number[], value: (i: number) => string): string {
  const terms = row.flatMap((coefficient, i) => (coefficient === 0 ? [] : [coefficient === 1 ? value(i) : `${coefficient} * ${value(i)}`]));
  return terms.join(' + ').replace(/\+ -/g, '- ');
}

/** Statements that declare NAME_I: row I of `matrix` times the values. */
function rowsTimes(matrix: readonly (readonly number[])[], name: string, value: (k: number) => string): string {
  return matrix.map((row, i) => `let ${name}_${i} = ${combination(row, value)};`).join(' ');
}

/**
 * matrix * tile * transposed matrix. First the rows of the tile, one after the other, into `t`, then its columns: in loops whose ends
 * are uniforms, so that nobody unrolls them (see product/software.ts). `size` is the tile's, `made` that of what it becomes (WGSL).
 * `load` declares v_0… of row r; `save` takes w_0… of column c.
 */
function transform(matrix: readonly (readonly number[])[], size: string, made: string, load: string, save: string): string {
  const [rows, columns] = [matrix.length, matrix[0].length];
  return `var t: array<vec4<f32>, ${rows * columns}>;
  for (var r = 0u; r < ${size}; r++) {
    ${load}
    ${rowsTimes(matrix, 'w', (k) => `v_${k}`)}
    ${matrix.map((_, i) => `t[r * ${rows}u + ${i}u] = w_${i};`).join(' ')}
  }
  for (var c = 0u; c < ${made}; c++) {
    ${matrix[0].map((_, k) => `let v_${k} = t[${k * rows}u + c];`).join(' ')}
    ${rowsTimes(matrix, 'w', (k) => `v_${k}`)}
    ${save}
  }`;
}

const SIX = [0, 1, 2, 3, 4, 5];
const FOUR = [0, 1, 2, 3];

const TILE_PLACE = `let tile = i / u.channels;
  let channel = i % u.channels;
  let tile_x = tile % u.across * 4u;
  let tile_y = tile / u.across % u.down * 4u;
  let image = tile / (u.across * u.down);`;

/** Threads have a tile of the input each, and behind those a pair of channels of the weights. */
const FROM_INPUTS: Shader<Spec> = {
  name: 'conv_winograd_inputs__sw_4x4',
  wgsl: () => linearMain(`  if (i >= u.inputs) {
  let k = i - u.inputs;
  ${transform(WEIGHTS, 'u.kernel', 'u.tile', [0, 1, 2].map((j) => `let v_${j} = vec4<f32>(w[(r * 3u + ${j}u) * u.columns + k]);`).join(' '),
    SIX.map((i) => `v[(${i * 6}u + c) * u.columns + k] = w_${i};`).join(' '))}
  return;
  }
  ${TILE_PLACE}
  ${SIX.map((j) => `let x_${j} = tile_x + ${j}u - u.pad_left;`).join(' ')}
  let plane = u.tiles * u.channels;
  ${transform(INPUT, 'u.tile', 'u.tile', `let y_in = tile_y + r - u.pad_top;
    let inside = y_in < u.in_h;
    let row = (image * u.in_h + y_in) * u.in_w;
    ${SIX.map((j) => `let v_${j} = select(vec4<f32>(0.0), vec4<f32>(x[select(0u, (row + x_${j}) * u.pitch + u.first + channel, inside && x_${j} < u.in_w)]), inside && x_${j} < u.in_w);`).join('\n    ')}`,
  SIX.map((i) => `y[(${i * 6}u + c) * plane + i] = w_${i};`).join(' '))}`),
};

interface OutputSpec extends Spec {
  /** The residual is in y, which must not be bound twice. */
  readonly inPlace?: boolean;
  readonly activation?: ActivationKind;
  readonly storage: StorageType;
}

const TO_OUTPUT: Shader<OutputSpec> = {
  name: 'conv_winograd_output__sw_4x4',
  wgsl({ activation, storage, inPlace }) {
    const write = (j: number) => `if (tile_y + ${j}u < u.out_h) { y[(pixel + ${j}u * u.out_w) * u.pitch + u.first + channel] = ${stored(storage, 4, activated(activation, `w_${j} + own_bias`, `residual_${j}`))}; }`;
    return `${activationText(activation, 4)}${linearMain(`  ${TILE_PLACE}
  let plane = u.tiles * u.channels;
  var own_bias = vec4<f32>(0.0);
  if (u.has_bias != 0u) { own_bias = vec4<f32>(bias[channel]); }
  ${transform(OUTPUT, 'u.tile', 'u.made', SIX.map((j) => `let v_${j} = vec4<f32>(p[(r * 6u + ${j}u) * plane + i]);`).join(' '), `if (tile_x + c >= u.out_w) { break; }
    let pixel = (image * u.out_h + tile_y) * u.out_w + tile_x + c;
    ${FOUR.map((j) => `var residual_${j} = vec4<f32>(0.0);`).join(' ')}
    if (u.has_residual != 0u) { ${FOUR.map((j) => `residual_${j} = vec4<f32>(${inPlace ? 'y' : 'residual'}[(pixel + ${j}u * u.out_w) * u.residual_pitch + u.residual_first + channel]);`).join(' ')} }
    ${FOUR.map(write).join('\n    ')}`)}`)}`;
  },
};
