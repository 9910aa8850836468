// A transposed convolution whose windows tile the output (kernel = stride, no pads): each input pixel becomes a tile.
// It is one product of pixels by all taps at once, and a copy that puts the tiles' rows in place.
import type { Context, Tensor } from '../../../../../contract/kernel';
import type { Program } from '../../../wgsl/program';
import { stridedCopy } from '../../../wgsl/strided_copy';
import type { Columns } from '../../shared/columns';
import type { Geometry } from '../../../../../contract/window';
import { permuted } from '../../shared/permute';
import { multiply } from '../../matmul/product/multiply';

/**
 * True if the windows tile the output. Pads before may be balanced by the same output padding: that shifts the tiles.
 */
export function tiles({ input, output, kernel, strides, dilations, begins }: Geometry): boolean {
  return kernel.every(
    (size, axis) =>
      size === strides[axis] && dilations[axis] === 1 && begins[axis] === 0 && output[axis] === input[axis] * size,
  );
}

export interface Tiling {
  /** [images, height, width, channels] */
  readonly x: Tensor;
  readonly from: Columns;
  /** [kernel_h, kernel_w, channels, outputs] */
  readonly w: Tensor;
  readonly y: Tensor;
  readonly to: Columns;
  readonly bias?: Tensor;
  readonly epilogue?: Program;
}

export function convolveTiles(ctx: Context, { x, from, w, y, to, bias, epilogue }: Tiling): void {
  const [images, height, width] = x.dims;
  const [kernelH, kernelW, , outputs] = w.dims;
  const pixels = images * height * width;
  const columns = kernelH * kernelW * outputs;
  const repeated = bias && ctx.temp([kernelH * kernelW, outputs], bias.dtype);
  if (bias && repeated) stridedCopy(ctx, bias, { strides: [0, 1] }, repeated, { strides: [outputs, 1] }, repeated.dims);
  const product = ctx.temp([pixels, columns], y.dtype);
  multiply(ctx, {
    left: 'matrix',
    a: x,
    b: permuted(ctx, w, [2, 0, 1, 3]),
    y: product,
    bias: repeated,
    epilogue,
    m: pixels,
    n: columns,
    depth: from.count,
    taps: 1,
    z: 1,
    lda: from.pitch,
    aFirst: from.first,
    ldb: columns,
    ldy: columns,
  });
  // [image and row, tap row, column, tap column, output]
  const dims = [images * height, kernelH, width, kernelW, outputs];
  const strides = [width * columns, kernelW * outputs, columns, outputs, 1];
  const row = width * kernelW * to.pitch;
  stridedCopy(
    ctx,
    product,
    { strides },
    y,
    { offset: to.first, strides: [kernelH * row, row, kernelW * to.pitch, to.pitch, 1] },
    dims,
  );
}
