// Convolution over two axes, channels last: chooses among a matrix product, a product over windows, Winograd's, and a
// window for each channel.
import { type Context, KernelError, type Tensor } from '../../../../../contract/kernel';
import { inBatches } from '../../../wgsl/large';
import { windowUniforms } from '../../../../../contract/window';
import { multipliesBytes, multiply } from '../../matmul/product/multiply';
import type { Product } from '../../matmul/product/product';
import { type ByteSteps, byteRows } from '../../quantization/blocks/byte_rows';
import { wordsOfFloats } from '../../quantization/blocks/byte_weights';
import type { ChannelsLast } from '../operands';
import { depthwise } from './depthwise';
import { suitsWinograd, winograd } from './winograd';

/** w is [kernel_h, kernel_w, channels / group, outputs]. */
export interface Convolution extends ChannelsLast {
  readonly group: number;
  /**
   * If pixels and weights are whole steps of 8 bits: the steps of pixels, and for each output the scale of its weights.
   */
  readonly bytes?: { readonly steps: ByteSteps; readonly scales: Tensor };
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
  if (c.bytes && c.bytes.scales.size !== outputs)
    throw new KernelError(`Conv: ${c.bytes.scales.size} scales for the weights of ${outputs} outputs`);
  if (y.size === 0) return;
  const each = depth === 1 && group > 1 && outputs === group;
  if (each && !ctx.device.ownElement) {
    depthwise(ctx, c);
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
  const product: Product =
    plain && group === 1
      ? { ...common, left: 'matrix', n: outputs, taps: 1, z: 1 }
      : {
          ...common,
          left: 'windows',
          n: each ? outputs : outputs / group,
          taps: kernelH * kernelW,
          z: each ? 1 : group,
          each,
          strides: {
            a: { group_channels: depth },
            b: { group_columns: outputs / group },
            plain: windowUniforms(geometry),
          },
        };
  if (c.bytes && group === 1 && worthBytes(ctx, product, (x.size / columns.x.pitch) * channels)) {
    const { words: a, rows } = byteRows(ctx, x, columns.x, c.bytes.steps, false);
    const { words: b, columns: factors } = wordsOfFloats(ctx, w, c.bytes.scales);
    const bytes = { rows, columns: factors, shifted: false };
    multiply(ctx, { ...product, a, b, lda: channels, aFirst: 0, bytes });
  } else if (group === 1 && suitsWinograd(ctx, c)) winograd(ctx, c);
  else multiply(ctx, product);
}

/** Number of reads of each pixel from which converting it to a byte in another dispatch is worth it. */
const READ_OFTEN = 64;

function worthBytes(ctx: Context, p: Product, numbers: number): boolean {
  const multiplications = p.m * p.n * p.depth * p.taps;
  const enough = multiplications >= Math.max(ctx.device.bytesFrom, READ_OFTEN * numbers);
  return enough && multipliesBytes(ctx, p);
}

/** True if the residual has the same place in its tensor as y in its own. */
function likeOutput({ residual, y, columns }: Convolution): boolean {
  return (
    residual?.id !== y.id && columns.residual?.pitch === columns.y.pitch && columns.residual.first === columns.y.first
  );
}
