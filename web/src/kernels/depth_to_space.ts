// DepthToSpace and SpaceToDepth are transposes of tensors seen with more axes.
import { type Kernel, KernelError } from '../jsep/kernel';
import { ALL, permute } from '../wgsl';

interface Blocks {
  readonly size: number;
  readonly columnsFirst: boolean;
}

const depthToSpace: Kernel<Blocks> = {
  op: 'DepthToSpace',
  types: [ALL],
  attributes: (given) => ({ size: given.integer('blocksize', 1), columnsFirst: given.text('mode', 'DCR') === 'CRD' }),
  resolve(ctx, { size, columnsFirst }) {
    const x = ctx.input(0);
    const [n, c, h, w] = x.dims;
    const depth = c / (size * size);
    if (x.dims.length !== 4 || !Number.isInteger(depth)) throw new KernelError(`DepthToSpace of [${x.dims}] with blocks of ${size}: the channels do not divide`);
    const y = ctx.output(0, [n, depth, h * size, w * size]);
    if (columnsFirst) permute(ctx, x, [n, depth, size, size, h, w], [0, 1, 4, 2, 5, 3], y);
    else permute(ctx, x, [n, size, size, depth, h, w], [0, 3, 4, 1, 5, 2], y);
  },
};

const spaceToDepth: Kernel<Blocks> = {
  op: 'SpaceToDepth',
  types: [ALL],
  attributes: (given) => ({ size: given.integer('blocksize', 1), columnsFirst: given.text('mode', 'DCR') === 'CRD' }),
  resolve(ctx, { size, columnsFirst }) {
    const x = ctx.input(0);
    const [n, c, h, w] = x.dims;
    const [rows, columns] = [h / size, w / size];
    if (x.dims.length !== 4 || !Number.isInteger(rows) || !Number.isInteger(columns)) {
      throw new KernelError(`SpaceToDepth of [${x.dims}] with blocks of ${size}: height and width must be multiples`);
    }
    const y = ctx.output(0, [n, c * size * size, rows, columns]);
    permute(ctx, x, [n, c, rows, size, columns, size], columnsFirst ? [0, 1, 3, 5, 2, 4] : [0, 3, 5, 1, 2, 4], y);
  },
};

export default [depthToSpace, spaceToDepth];
