// 3x3 convolution with stride 1 by Winograd's F(4x4, 3x3): 36 products of matrices for tiles of 4x4 outputs, with a quarter of the
// multiplications. For software adapters, which have few of them; a GPU has more to lose by the dispatches around.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { activated, type Activation, ACTIVATION_F32, type ActivationKind, activationText, activationUniforms } from '../../wgsl/activation';
import { hoistUniforms } from '../../wgsl/hoist';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { Geometry } from '../_conv_geometry';
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

export interface Winograd {
  /** [images, height, width, channels] */
  readonly x: Tensor;
  /** [3, 3, channels, outputs] */
  readonly w: Tensor;
  readonly y: Tensor;
  readonly bias?: Tensor;
  readonly residual?: Tensor;
  readonly activation?: Activation;
  readonly geometry: Geometry;
}

export function suitsWinograd(ctx: Context, w: Tensor, { kernel, strides, dilations, output }: Geometry): boolean {
  const [, , channels, outputs] = w.dims;
  const every = (numbers: readonly number[], wanted: number) => numbers.every((number) => number === wanted);
  return ctx.device.software && w.storage === 'f32' && every(kernel, 3) && every(strides, 1) && every(dilations, 1) && channels % 4 === 0 && outputs % 4 === 0
    && Math.min(channels, outputs) >= FEWEST_CHANNELS && Math.ceil(output[0] / TILE) * Math.ceil(output[1] / TILE) >= FEWEST_TILES;
}

export function winograd(ctx: Context, { x, w, y, bias, residual, activation, geometry }: Winograd): void {
  const [images, , , channels] = x.dims;
  const outputs = w.dims[3];
  const [down, across] = geometry.output.map((size) => Math.ceil(size / TILE));
  const tiles = images * down * across;
  const places = {
    in_h: geometry.input[0], in_w: geometry.input[1], out_h: geometry.output[0], out_w: geometry.output[1], down, across, tiles,
    pad_top: geometry.begins[0], pad_left: geometry.begins[1],
  };
  const transformed = ctx.temp([POINTS, tiles, channels], x.dtype);
  const weights = ctx.temp([POINTS, channels, outputs], w.dtype);
  const products = ctx.temp([POINTS, tiles, outputs], y.dtype);
  const vec = 4 as const;
  const inputs = (tiles * channels) / vec;
  const columns = (channels * outputs) / vec;
  ctx.dispatch({
    shader: FROM_INPUTS, spec: {}, inputs: { x: { tensor: x, vec }, w: { tensor: w, vec } },
    outputs: { y: { tensor: transformed, vec }, v: { tensor: weights, vec } },
    uniforms: { count: inputs + columns, inputs, columns, channels: channels / vec, ...places }, workgroups: linearWorkgroups(inputs + columns, ctx.device),
  });
  multiply(ctx, {
    left: 'matrix', a: transformed, b: weights, y: products, m: tiles, n: outputs, depth: channels, taps: 1, z: POINTS, lda: channels, ldb: outputs, ldy: outputs,
    batch: 1, strides: { plain: { batch: [POINTS] }, a: { a_batch: [tiles * channels] }, b: { b_batch: [channels * outputs], y_batch: [tiles * outputs] } },
  });
  const sums = (tiles * outputs) / vec;
  ctx.dispatch({
    shader: TO_OUTPUT, spec: { bias: bias !== undefined, residual: residual !== undefined, activation: activation?.kind, storage: y.storage },
    inputs: { p: { tensor: products, vec }, ...(bias && { bias: { tensor: bias, vec } }), ...(residual && { residual: { tensor: residual, vec } }) },
    outputs: { y: { tensor: y, vec } },
    uniforms: { count: sums, channels: outputs / vec, ...places, ...activationUniforms(activation) }, f32: ACTIVATION_F32, workgroups: linearWorkgroups(sums, ctx.device),
  });
}

/** WGSL of a row of coefficients times values: the sum of those that are not 0. */
function combination(row: readonly number[], value: (i: number) => string): string {
  const terms = row.flatMap((coefficient, i) => (coefficient === 0 ? [] : [coefficient === 1 ? value(i) : `${coefficient} * ${value(i)}`]));
  return terms.join(' + ').replace(/\+ -/g, '- ');
}

/** Statements that declare t_I_J = the rows of `matrix` over the first index of `value`. */
function overRows(matrix: readonly (readonly number[])[], width: number, value: (i: number, j: number) => string, name = 't'): string {
  return matrix.flatMap((row, i) => Array.from({ length: width }, (_, j) => `let ${name}_${i}_${j} = ${combination(row, (k) => value(k, j))};`)).join('\n  ');
}

const TILE_PLACE = `let tile = i / u.channels;
  let c = i % u.channels;
  let tile_x = tile % u.across * 4u;
  let tile_y = tile / u.across % u.down * 4u;
  let image = tile / (u.across * u.down);`;

const WEIGHTS_TEXT = `  ${[0, 1, 2].map((i) => [0, 1, 2].map((j) => `let g_${i}_${j} = vec4<f32>(w[${i * 3 + j}u * u.columns + k]);`).join(' ')).join('\n  ')}
  ${overRows(WEIGHTS, 3, (k, j) => `g_${k}_${j}`)}
  ${WEIGHTS.map((_, i) => WEIGHTS.map((row, j) => `v[${i * 6 + j}u * u.columns + k] = ${combination(row, (k) => `t_${i}_${k}`)};`).join('\n  ')).join('\n  ')}`;

/** Threads have a tile of the input each, and behind those a pair of channels of the weights. */
const FROM_INPUTS: Shader<Spec> = {
  name: 'conv_winograd_inputs__sw_4x4',
  wgsl: () => {
    const six = [0, 1, 2, 3, 4, 5];
    const loads = six.flatMap((i) => six.map((j) =>
      `let d_${i}_${j} = select(vec4<f32>(0.0), vec4<f32>(x[select(0u, (row_${i} + x_${j}) * u.channels + c, has_${i} && x_${j} < u.in_w)]), has_${i} && x_${j} < u.in_w);`));
    return hoistUniforms(linearMain(`  if (i >= u.inputs) {
  let k = i - u.inputs;
${WEIGHTS_TEXT}
  return;
  }
  ${TILE_PLACE}
  ${six.map((j) => `let x_${j} = tile_x + ${j}u - u.pad_left;`).join(' ')}
  ${six.map((i) => `let y_${i} = tile_y + ${i}u - u.pad_top; let has_${i} = y_${i} < u.in_h; let row_${i} = (image * u.in_h + y_${i}) * u.in_w;`).join('\n  ')}
  ${loads.join('\n  ')}
  ${overRows(INPUT, 6, (k, j) => `d_${k}_${j}`)}
  let plane = u.tiles * u.channels;
  ${six.map((i) => INPUT.map((row, j) => `y[${i * 6 + j}u * plane + i] = ${combination(row, (k) => `t_${i}_${k}`)};`).join('\n  ')).join('\n  ')}`));
  },
};

interface OutputSpec extends Spec {
  readonly bias: boolean;
  readonly residual: boolean;
  readonly activation?: ActivationKind;
  readonly storage: StorageType;
}

const TO_OUTPUT: Shader<OutputSpec> = {
  name: 'conv_winograd_output__sw_4x4',
  wgsl: ({ bias, residual, activation, storage }) => {
    const six = [0, 1, 2, 3, 4, 5];
    const write = (i: number, j: number) => {
      const terms = [combination(OUTPUT[j], (k) => `t_${i}_${k}`), ...(bias ? ['own_bias'] : [])];
      return `if (tile_x + ${j}u < u.out_w) { let at = (row + tile_x + ${j}u) * u.channels + c; y[at] = ${stored(storage, 4, activated(activation, terms.join(' + '), residual ? 'vec4<f32>(residual[at])' : undefined))}; }`;
    };
    return hoistUniforms(`${activationText(activation, 4)}${linearMain(`  ${TILE_PLACE}
  let plane = u.tiles * u.channels;
  ${six.map((i) => six.map((j) => `let p_${i}_${j} = p[${i * 6 + j}u * plane + i];`).join(' ')).join('\n  ')}
  ${overRows(OUTPUT, 6, (k, j) => `p_${k}_${j}`)}
  ${bias ? 'let own_bias = vec4<f32>(bias[c]);' : ''}
  ${[0, 1, 2, 3].map((i) => `if (tile_y + ${i}u < u.out_h) { let row = (image * u.out_h + tile_y + ${i}u) * u.out_w;
    ${[0, 1, 2, 3].map((j) => write(i, j)).join('\n    ')} }`).join('\n  ')}`)}`);
  },
};
