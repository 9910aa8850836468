import type { Kernel } from '../../../../contract/kernel';
import { KernelError } from '../../../../contract/kernel';
import { ALL, permute } from '../../wgsl';

const transpose: Kernel<number[] | undefined> = {
  op: 'Transpose',
  types: [ALL],
  attributes: (given) => (given.has('perm') ? given.integers('perm') : undefined),
  resolve(ctx, given) {
    const x = ctx.input(0);
    const perm = given ?? x.dims.map((_, axis) => x.dims.length - 1 - axis);
    if (perm.length !== x.dims.length || x.dims.some((_, axis) => !perm.includes(axis))) {
      throw new KernelError(`Transpose: perm [${perm}] does not order the axes of [${x.dims}]`);
    }
    const dims = perm.map((axis) => x.dims[axis]);
    // If only axes of one element change places, nothing moves.
    const moving = perm.filter((axis) => x.dims[axis] !== 1);
    if (moving.every((axis, i) => i === 0 || axis > moving[i - 1])) ctx.view(0, x, dims);
    else permute(ctx, x, x.dims, perm, ctx.output(0, dims));
  },
};

export default [transpose];
