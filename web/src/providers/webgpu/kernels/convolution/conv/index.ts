// Conv in both layouts, and com.microsoft's FusedConv.
import type { Attributes } from '../../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  NHWC_DOMAIN,
  type Tensor,
} from '../../../../../contract/kernel';
import { epilogueOf, readEpilogue, residualFirst, residualOf } from '../../../wgsl/epilogue';
import type { Program } from '../../../wgsl/program';
import { type ColumnAttributes, columnsOf, outputColumns, readColumns } from '../../shared/columns';
import { readWindow, slide, type WindowAttributes } from '../../../../../contract/window';
import { channelsLast, channelsSecond, permuted, permuteInto } from '../../shared/permute';
import { type ByteSteps, readSteps } from '../../quantization/blocks/byte_rows';
import { convolveDirectly } from './direct';
import { convolve } from './nhwc';
import { Dialect, Place } from '../../../../../schema/dialect';

interface ConvAttributes {
  readonly window: WindowAttributes;
  readonly group: number;
  /** True if the weights are [kernel_h, kernel_w, channels / group, outputs]. */
  readonly hwio: boolean;
  readonly epilogue?: Program;
  readonly columns: ColumnAttributes;
  /** The steps of pixels, if input 4 has the scales of the weights for each output. */
  readonly steps?: ByteSteps;
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const TYPES = [FLOATS];

function attributes(a: Attributes): ConvAttributes {
  const layout = a.text(Dialect.WEIGHT_LAYOUT, '');
  if (layout !== '' && layout !== Dialect.HWIO)
    throw new KernelError(`Conv: weights in layout ${layout} are for another provider`);
  return {
    window: readWindow(a),
    group: a.integer('group', 1),
    hwio: layout === Dialect.HWIO,
    epilogue: readEpilogue(a),
    columns: readColumns(a),
    steps: readSteps(a),
  };
}

/** X and Y in N, H, W, C order. */
function resolveNhwc(ctx: Context, { window, group, hwio, epilogue, columns, steps }: ConvAttributes): void {
  const x = ctx.input(0);
  if (x.dims.length !== 4) throw new KernelError(`Conv over ${x.dims.length - 2} axes with channels last`, true);
  const w = hwio ? ctx.input(1) : permuted(ctx, ctx.input(1), [2, 3, 1, 0]);
  const geometry = slide(window, x.dims.slice(1, 3), w.dims.slice(0, 2));
  const dims = [x.dims[0], ...geometry.output, w.dims[3]];
  const { y, at } = outputColumns(ctx, dims, columns);
  const residual = residualOf(ctx, epilogue, dims, columns.residual);
  const scales = ctx.inputs[Place.CONV_SCALES];
  convolve(ctx, {
    x,
    w,
    y,
    bias: ctx.inputs[Place.PRODUCT_BIAS],
    residual,
    epilogue,
    group,
    geometry,
    columns: { x: columnsOf(x, columns.x), y: at, residual: residual && columnsOf(residual, columns.residual) },
    bytes: steps && scales && { steps, scales },
  });
}

/** X and Y in N, C, … order: between two transposes, with an extra axis if there is only one. */
function resolve(ctx: Context, { window, group, epilogue }: ConvAttributes): void {
  const [x, w] = [ctx.input(0), ctx.input(1)];
  const rank = x.dims.length;
  if (rank < 3 || w.dims.length !== rank) throw new KernelError(`Conv of [${x.dims}] with weights [${w.dims}]`);
  if (w.dims[1] * group !== x.dims[1])
    throw new KernelError(`Conv: ${x.dims[1]} channels in ${group} groups do not go with weights [${w.dims}]`);
  const geometry = slide(window, x.dims.slice(2), w.dims.slice(2));
  const y = ctx.output(0, [x.dims[0], w.dims[0], ...geometry.output]);
  const [bias, residual] = [ctx.inputs[Place.PRODUCT_BIAS], residualOf(ctx, epilogue, y.dims)];
  if (rank > 4) {
    convolveDirectly(ctx, { x, w, y, bias, residual, epilogue, transposed: false, group, geometry });
    return;
  }
  const flat = (tensor: Tensor) =>
    rank === 4 ? tensor : ctx.reshape(tensor, [tensor.dims[0], tensor.dims[1], 1, tensor.dims[2]]);
  const wide = rank === 4 ? geometry : withAxis(geometry);
  const last = channelsLast(4);
  const dims = [x.dims[0], ...wide.output, w.dims[0]];
  const still = y.dims.slice(2).every((size) => size === 1) || w.dims[0] === 1;
  const target = still ? ctx.reshape(y, dims) : ctx.temp(dims, y.dtype);
  const images = permuted(ctx, flat(x), last);
  convolve(ctx, {
    x: images,
    w: permuted(ctx, flat(w), [2, 3, 1, 0]),
    y: target,
    bias,
    residual: residual && permuted(ctx, flat(residual), last),
    epilogue,
    group,
    geometry: wide,
    columns: { x: columnsOf(images), y: columnsOf(target) },
  });
  if (!still) permuteInto(ctx, target, channelsSecond(4), y);
}

/** The same geometry with a leading axis of one element. */
function withAxis<G extends { readonly [key in keyof G]: readonly number[] }>(geometry: G): G {
  const neutral: { readonly [key: string]: number } = { begins: 0, ends: 0 };
  return Object.fromEntries(
    Object.entries(geometry).map(([key, value]) => [key, [neutral[key] ?? 1, ...(value as number[])]]),
  ) as unknown as G;
}

const conv: Kernel<ConvAttributes> = {
  op: 'Conv',
  types: TYPES,
  features: ['epilogue', 'residual', 'steps'],
  attributes,
  resolve,
};

/** com.microsoft's adds its residual before the activation. */
const fusedConv: Kernel<ConvAttributes> = {
  op: 'FusedConv',
  domain: MICROSOFT_DOMAIN,
  types: TYPES,
  attributes: (a) => ({
    ...attributes(a),
    epilogue: epilogueOf(a.text('activation', ''), a.numbers('activation_params')),
  }),
  resolve: (ctx, { epilogue, ...given }) =>
    resolve(ctx, { ...given, epilogue: ctx.inputs[Place.PRODUCT_RESIDUAL] ? residualFirst(epilogue) : epilogue }),
};

export default [
  conv,
  fusedConv,
  {
    ...conv,
    domain: NHWC_DOMAIN,
    features: ['bytes', 'columns', 'epilogue', 'residual', 'steps'],
    resolve: resolveNhwc,
  },
];
