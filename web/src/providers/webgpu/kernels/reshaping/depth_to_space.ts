// DepthToSpace and SpaceToDepth are transposes of tensors viewed with more axes, channels second or last.
import { type Kernel, KernelError, NHWC_DOMAIN } from '../../../../contract/kernel';
import { ALL, permute } from '../../wgsl';

interface Blocks {
  readonly size: number;
  readonly columnsFirst: boolean;
}

const attributes: Kernel<Blocks>['attributes'] = (given) => ({
  size: given.integer('blocksize', 1),
  columnsFirst: given.text('mode', 'DCR') === 'CRD',
});

/** [images, channels, height, width], for any order of x. */
function imageDims(dims: readonly number[], last: boolean): number[] {
  return last ? [dims[0], dims[3], dims[1], dims[2]] : [...dims];
}

const depthToSpace = (last: boolean): Kernel<Blocks> => ({
  op: 'DepthToSpace',
  domain: last ? NHWC_DOMAIN : undefined,
  types: [ALL],
  attributes,
  resolve(ctx, { size, columnsFirst }) {
    const x = ctx.input(0);
    const [n, c, h, w] = imageDims(x.dims, last);
    const depth = c / (size * size);
    if (x.dims.length !== 4 || !Number.isInteger(depth))
      throw new KernelError(`DepthToSpace of [${x.dims}] with blocks of ${size}: the channels do not divide`);
    const y = ctx.output(0, last ? [n, h * size, w * size, depth] : [n, depth, h * size, w * size]);
    if (last && columnsFirst) permute(ctx, x, [n, h, w, depth, size, size], [0, 1, 4, 2, 5, 3], y);
    else if (last) permute(ctx, x, [n, h, w, size, size, depth], [0, 1, 3, 2, 4, 5], y);
    else if (columnsFirst) permute(ctx, x, [n, depth, size, size, h, w], [0, 1, 4, 2, 5, 3], y);
    else permute(ctx, x, [n, size, size, depth, h, w], [0, 3, 4, 1, 5, 2], y);
  },
});

const spaceToDepth = (last: boolean): Kernel<Blocks> => ({
  op: 'SpaceToDepth',
  domain: last ? NHWC_DOMAIN : undefined,
  types: [ALL],
  attributes,
  resolve(ctx, { size, columnsFirst }) {
    const x = ctx.input(0);
    const [n, c, h, w] = imageDims(x.dims, last);
    const [rows, columns] = [h / size, w / size];
    if (x.dims.length !== 4 || !Number.isInteger(rows) || !Number.isInteger(columns)) {
      throw new KernelError(`SpaceToDepth: height and width of x [${x.dims}] must be multiples of blocksize ${size}`);
    }
    const depth = c * size * size;
    const y = ctx.output(0, last ? [n, rows, columns, depth] : [n, depth, rows, columns]);
    if (last)
      permute(ctx, x, [n, rows, size, columns, size, c], columnsFirst ? [0, 1, 3, 5, 2, 4] : [0, 1, 3, 2, 4, 5], y);
    else permute(ctx, x, [n, c, rows, size, columns, size], columnsFirst ? [0, 1, 3, 5, 2, 4] : [0, 3, 5, 1, 2, 4], y);
  },
});

export default [false, true].flatMap((last) => [depthToSpace(last), spaceToDepth(last)]);
