// Convolution over two axes, channels last: chooses among a matrix product, a product over windows, Winograd's, and one window a channel.
import { type Context, KernelError } from '../../jsep/kernel';
import { type ConvolutionOperands, windowUniforms } from '../_conv_geometry';
import { multiply } from '../product/multiply';
import { depthwise } from './depthwise';
import { suitsWinograd, winograd } from './winograd';

/** w is [kernel_h, kernel_w, channels / group, outputs]. */
export interface Convolution extends ConvolutionOperands {
  readonly group: number;
}

export function convolve(ctx: Context, c: Convolution): void {
  const { x, w, y, bias, residual, activation, group, geometry } = c;
  const [images, , , channels] = x.dims;
  const [kernelH, kernelW, depth, columns] = w.dims;
  if (depth * group !== channels || columns % group !== 0) {
    throw new KernelError(`Conv: ${channels} channels in ${group} groups do not go with weights of shape [${w.dims}] (height, width, channels of a group, outputs)`);
  }
  if (y.size === 0) return;
  if (depth === 1 && group > 1 && columns === group) {
    depthwise(ctx, c);
    return;
  }
  if (group === 1 && suitsWinograd(ctx, w, geometry)) {
    winograd(ctx, c);
    return;
  }
  const plain = kernelH * kernelW === 1 && [...geometry.begins, ...geometry.ends].every((pad) => pad === 0) && geometry.strides.every((stride) => stride === 1);
  const common = { a: x, b: w, y, bias, residual, activation, m: images * geometry.output[0] * geometry.output[1], depth, lda: channels, ldb: columns, ldy: columns };
  if (plain && group === 1) {
    multiply(ctx, { ...common, left: 'matrix', n: columns, taps: 1, z: 1 });
    return;
  }
  multiply(ctx, {
    ...common, left: 'windows', n: columns / group, taps: kernelH * kernelW, z: group,
    strides: { a: { group_channels: depth }, b: { group_columns: columns / group }, plain: windowUniforms(geometry) },
  });
}
