// ConvTranspose in both layouts, as a product over the taps that reach each output pixel (see product/spec.ts: phases).
import type { Attributes } from '../../../../../contract/attributes';
import { type Context, type DTypeName, type Kernel, KernelError, NHWC_DOMAIN } from '../../../../../contract/kernel';
import { readEpilogue, residualOf } from '../../../wgsl/epilogue';
import type { Program } from '../../../wgsl/program';
import { inBatches } from '../../../wgsl/large';
import { type ColumnAttributes, columnsOf, outputColumns, readColumns } from '../../shared/columns';
import type { ChannelsLast } from '../operands';
import { readWindow, slideTransposed, windowUniforms, type WindowAttributes } from '../../../../../contract/window';
import { channelsLast, channelsSecond, permuted, permuteInto } from '../../shared/permute';
import { convolveDirectly } from '../conv/direct';
import { multiply } from '../../matmul/product/multiply';
import { convolveTiles, tiles } from './tiling';
import { Dialect, Place } from '../../../../../schema/dialect';

interface TransposedAttributes {
  readonly window: WindowAttributes;
  readonly outputShape: readonly number[];
  readonly outputPadding: readonly number[];
  readonly group: number;
  /** True if the weights are [kernel_h, kernel_w, channels, outputs / group]. */
  readonly hwio: boolean;
  readonly epilogue?: Program;
  readonly columns: ColumnAttributes;
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];

function attributes(a: Attributes): TransposedAttributes {
  const layout = a.text(Dialect.WEIGHT_LAYOUT, '');
  if (layout !== '' && layout !== Dialect.HWIO)
    throw new KernelError(`ConvTranspose: weights in layout ${layout} are for another provider`);
  return {
    window: readWindow(a),
    outputShape: a.integers('output_shape'),
    outputPadding: a.integers('output_padding'),
    group: a.integer('group', 1),
    hwio: layout === Dialect.HWIO,
    epilogue: readEpilogue(a),
    columns: readColumns(a),
  };
}

/** w is [kernel_h, kernel_w, channels, outputs / group]. */
interface Transposed extends ChannelsLast {
  readonly group: number;
}

function convolveTransposed(ctx: Context, c: Transposed): void {
  inBatches(ctx, c.x.dims[0], { x: c.x, y: c.y, residual: c.residual }, (part) =>
    convolveImages(ctx, { ...c, ...part }),
  );
}

function convolveImages(
  ctx: Context,
  { x, w, y, bias, residual, epilogue, group, geometry, columns: { x: from, y: to } }: Transposed,
): void {
  const channels = from.count;
  const columns = w.dims[3];
  if (w.dims[2] !== channels || channels % group !== 0) {
    throw new KernelError(
      `ConvTranspose: ${channels} channels in ${group} groups do not go with weights of shape [${w.dims}] ` +
        `(height, width, channels, outputs of a group)`,
    );
  }
  if (y.size === 0) return;
  if (ctx.device.software && group === 1 && !residual && tiles(geometry)) {
    convolveTiles(ctx, { x, from, w, y, to, bias, epilogue });
    return;
  }
  const { output, strides, kernel } = geometry;
  const depth = channels / group;
  const across = output.map((size, axis) => Math.ceil(size / strides[axis]));
  multiply(ctx, {
    left: 'phases',
    a: x,
    b: w,
    y,
    bias,
    residual,
    epilogue,
    m: x.dims[0] * across[0] * across[1],
    n: columns,
    depth,
    taps: Math.ceil(kernel[0] / strides[0]) * Math.ceil(kernel[1] / strides[1]),
    z: strides[0] * strides[1] * group,
    lda: from.pitch,
    aFirst: from.first,
    ldb: columns,
    ldy: to.pitch,
    yFirst: to.first,
    strides: {
      a: { group_channels: depth },
      b: { group_columns: columns, group_rows: depth * columns },
      plain: {
        ...windowUniforms({ ...geometry, output: across }),
        groups: group,
        tap_rows: channels,
        full_h: output[0],
        full_w: output[1],
      },
    },
  });
}

/** X and Y in N, H, W, C order. */
function resolveNhwc(
  ctx: Context,
  { window, outputShape, outputPadding, group, hwio, epilogue, columns }: TransposedAttributes,
): void {
  const x = ctx.input(0);
  // The layout pass makes no other ranks.
  if (x.dims.length !== 4) throw new KernelError(`ConvTranspose over ${x.dims.length - 2} axes with channels last`);
  const dilated = window.dilations.some((dilation) => dilation !== 1);
  const w = hwio ? ctx.input(1) : permuted(ctx, ctx.input(1), [2, 3, 0, 1]);
  const geometry = slideTransposed(window, x.dims.slice(1, 3), w.dims.slice(0, 2), { outputShape, outputPadding });
  const dims = [x.dims[0], ...geometry.output, w.dims[3] * group];
  const residual = residualOf(ctx, epilogue, dims, columns.residual);
  if (dilated) {
    const y = ctx.output(0, dims);
    // Rare: the kernel with channels second, between transposes.
    const target = ctx.temp([y.dims[0], y.dims[3], ...geometry.output], y.dtype);
    convolveDirectly(ctx, {
      x: permuted(ctx, x, channelsSecond(4)),
      w: permuted(ctx, w, [2, 3, 0, 1]),
      y: target,
      bias: ctx.inputs[Place.PRODUCT_BIAS],
      residual: residual && permuted(ctx, residual, channelsSecond(4)),
      epilogue,
      transposed: true,
      group,
      geometry,
    });
    permuteInto(ctx, target, channelsLast(4), y);
    return;
  }
  const { y, at } = outputColumns(ctx, dims, columns);
  convolveTransposed(ctx, {
    x,
    w,
    y,
    bias: ctx.inputs[Place.PRODUCT_BIAS],
    residual,
    epilogue,
    group,
    geometry,
    columns: { x: columnsOf(x, columns.x), y: at },
  });
}

/** X and Y in N, C, … order. */
function resolve(ctx: Context, { window, outputShape, outputPadding, group, epilogue }: TransposedAttributes): void {
  const [x, w, bias] = [ctx.input(0), ctx.input(1), ctx.inputs[Place.PRODUCT_BIAS]];
  const rank = x.dims.length;
  if (rank < 3 || w.dims.length !== rank || w.dims[0] !== x.dims[1])
    throw new KernelError(`ConvTranspose of [${x.dims}] with weights [${w.dims}]`);
  const geometry = slideTransposed(window, x.dims.slice(2), w.dims.slice(2), { outputShape, outputPadding });
  const y = ctx.output(0, [x.dims[0], w.dims[1] * group, ...geometry.output]);
  const residual = residualOf(ctx, epilogue, y.dims);
  if (rank !== 4 || geometry.dilations.some((dilation) => dilation !== 1)) {
    convolveDirectly(ctx, { x, w, y, bias, residual, epilogue, transposed: true, group, geometry });
    return;
  }
  const target = ctx.temp([x.dims[0], ...geometry.output, y.dims[1]], y.dtype);
  const images = permuted(ctx, x, channelsLast(4));
  convolveTransposed(ctx, {
    x: images,
    w: permuted(ctx, w, [2, 3, 0, 1]),
    y: target,
    bias,
    residual: residual && permuted(ctx, residual, channelsLast(4)),
    epilogue,
    group,
    geometry,
    columns: { x: columnsOf(images), y: columnsOf(target) },
  });
  permuteInto(ctx, target, channelsSecond(4), y);
}

const transposed: Kernel<TransposedAttributes> = {
  op: 'ConvTranspose',
  types: [FLOATS],
  features: ['epilogue', 'residual', 'steps'],
  attributes,
  resolve,
};

export default [
  transposed,
  { ...transposed, domain: NHWC_DOMAIN, features: ['columns', 'epilogue', 'residual', 'steps'], resolve: resolveNhwc },
];
