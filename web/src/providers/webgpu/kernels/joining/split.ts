import { type Kernel, KernelError } from '../../../../contract/kernel';
import { ALL, HOST, normalizeAxis, stridedCopy, stridesOf } from '../../wgsl';

const split: Kernel<{ axis: number; parts: number }> = {
  op: 'Split',
  types: [ALL, HOST],
  attributes: (given) => ({ axis: given.integer('axis', 0), parts: given.integer('num_outputs', 0) }),
  resolve(ctx, { axis: givenAxis, parts }) {
    const x = ctx.input(0);
    const axis = normalizeAxis(givenAxis, x.dims.length);
    const dim = x.dims[axis];
    const count = parts || ctx.outputCount;
    const even = Math.ceil(dim / count);
    const sizes = ctx.data(1) ?? Array.from({ length: count }, (_, i) => Math.max(0, Math.min(even, dim - i * even)));
    if (sizes.reduce((sum, size) => sum + size, 0) !== dim)
      throw new KernelError(`Split of axis ${axis} of [${x.dims}] into [${sizes}]: the sizes do not add up to ${dim}`);
    const strides = stridesOf(x.dims);
    let start = 0;
    sizes.forEach((size, i) => {
      const dims = x.dims.map((d, k) => (k === axis ? size : d));
      if (ctx.wants(i)) {
        if (size === dim) ctx.view(i, x, dims);
        else
          stridedCopy(
            ctx,
            x,
            { offset: start * strides[axis], strides },
            ctx.output(i, dims),
            { strides: stridesOf(dims) },
            dims,
          );
      }
      start += size;
    });
  },
};

export default [split];
