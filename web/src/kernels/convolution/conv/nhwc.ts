// Convolution over two axes, channels last: chooses among a matrix product, a product over windows, Winograd's, and one
// window a channel.
import { type Context, KernelError } from '../../../contract/kernel';
import { inBatches } from '../../../wgsl/large';
import { windowUniforms } from '../../shared/window';
import { multiply } from '../../matmul/product/multiply';
import type { ChannelsLast } from '../operands';
import { depthwise } from './depthwise';
import { suitsWinograd, winograd } from './winograd';

/** w is [kernel_h, kernel_w, channels / group, outputs]. */
export interface Convolution extends ChannelsLast {
  readonly group: number;
}

export function convolve(ctx: Context, c: Convolution): void {
  inBatches(ctx, c.x.dims[0], { x: c.x, y: c.y, residual: c.residual }, (part) =>
    convolveImages(ctx, { ...c, ...part }),
  );
}

function convolveImages(ctx: Context, c: Convolution): void {
  const { x, w, y, bias, residual, epilogue, group, geometry, columns } = c;
  const images = x.dims[0];
  const channels = columns.x.count;
  const [kernelH, kernelW, depth, outputs] = w.dims;
  if (depth * group !== channels || outputs % group !== 0) {
    throw new KernelError(
      `Conv: ${channels} channels in ${group} groups do not go with weights of shape [${w.dims}] ` +
        `(height, width, channels of a group, outputs)`,
    );
  }
  if (y.size === 0) return;
  if (depth === 1 && group > 1 && outputs === group) {
    depthwise(ctx, c);
    return;
  }
  if (group === 1 && suitsWinograd(ctx, c)) {
    winograd(ctx, c);
    return;
  }
  const plain =
    kernelH * kernelW === 1 &&
    [...geometry.begins, ...geometry.ends].every((pad) => pad === 0) &&
    geometry.strides.every((stride) => stride === 1);
  const common = {
    a: x,
    b: w,
    y,
    bias,
    residual,
    epilogue,
    m: images * geometry.output[0] * geometry.output[1],
    depth,
    lda: columns.x.pitch,
    aFirst: columns.x.first,
    ldb: outputs,
    ldy: columns.y.pitch,
    yFirst: columns.y.first,
    ...(residual && !likeOutput(c) && { residualColumns: columns.residual }),
  };
  if (plain && group === 1) {
    multiply(ctx, { ...common, left: 'matrix', n: outputs, taps: 1, z: 1 });
    return;
  }
  multiply(ctx, {
    ...common,
    left: 'windows',
    n: outputs / group,
    taps: kernelH * kernelW,
    z: group,
    strides: { a: { group_channels: depth }, b: { group_columns: outputs / group }, plain: windowUniforms(geometry) },
  });
}

/** Whether the residual lies in its tensor as y does in its own. */
function likeOutput({ residual, y, columns }: Convolution): boolean {
  return (
    residual?.id !== y.id && columns.residual?.pitch === columns.y.pitch && columns.residual.first === columns.y.first
  );
}
