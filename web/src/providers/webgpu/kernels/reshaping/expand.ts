// Expand and Tile: copies by walks that return to the same elements.
import { type Kernel, KernelError } from '../../../../contract/kernel';
import { ALL, broadcastDims, broadcastStrides, HOST, stridedCopy, stridesOf } from '../../wgsl';

const expand: Kernel = {
  op: 'Expand',
  types: [ALL, HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const dims = broadcastDims(x.dims, ctx.data(1) ?? []);
    if (dims.every((dim, axis) => dim === x.dims[axis])) return ctx.view(0, x, dims);
    stridedCopy(
      ctx,
      x,
      { strides: broadcastStrides(x.dims, dims) },
      ctx.output(0, dims),
      { strides: stridesOf(dims) },
      dims,
    );
  },
};

const tile: Kernel = {
  op: 'Tile',
  types: [ALL, HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const repeats = ctx.data(1) ?? [];
    if (repeats.length !== x.dims.length)
      throw new KernelError(
        `Tile: [${repeats}] are ${repeats.length} repeats for the ${x.dims.length} axes of [${x.dims}]`,
      );
    if (repeats.every((count) => count === 1)) return ctx.view(0, x, x.dims);
    // Each axis becomes two: the repeats, with step 0, and the elements.
    const walked = x.dims.flatMap((dim, axis) => [repeats[axis], dim]);
    const strides = stridesOf(x.dims).flatMap((stride) => [0, stride]);
    const y = ctx.output(
      0,
      x.dims.map((dim, axis) => dim * repeats[axis]),
    );
    stridedCopy(ctx, x, { strides }, y, { strides: stridesOf(walked) }, walked);
  },
};

export default [expand, tile];
