import { type Kernel, KernelError } from '../../../../contract/kernel';
import { ALL, HOST, normalizeAxes, stridedCopy, stridesOf } from '../../wgsl';

const slice: Kernel = {
  op: 'Slice',
  types: [ALL, HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const rank = x.dims.length;
    const [starts, ends] = [ctx.data(1) ?? [], ctx.data(2) ?? []];
    const axes = normalizeAxes(ctx.data(3) ?? starts.map((_, axis) => axis), rank);
    const steps = ctx.data(4) ?? starts.map(() => 1);
    const dims = [...x.dims];
    const first = x.dims.map(() => 0);
    const step = x.dims.map(() => 1);
    axes.forEach((axis, k) => {
      const dim = x.dims[axis];
      if (steps[k] === 0) throw new KernelError('Slice: a step of 0');
      const back = steps[k] < 0;
      // In a backward slice an end before the first element is -1, not the last element.
      const clamp = (at: number, low: number, high: number): number =>
        Math.min(Math.max(at < 0 ? at + dim : at, low), high);
      first[axis] = back ? clamp(starts[k], 0, dim - 1) : clamp(starts[k], 0, dim);
      const end = back ? clamp(ends[k], -1, dim - 1) : clamp(ends[k], 0, dim);
      step[axis] = steps[k];
      dims[axis] = dim === 0 ? 0 : Math.max(0, Math.ceil((end - first[axis]) / steps[k]));
    });
    if (dims.every((dim, axis) => dim === x.dims[axis]) && step.every((s, axis) => s === 1 || dims[axis] <= 1))
      return ctx.view(0, x, dims);
    const strides = stridesOf(x.dims);
    const offset = first.reduce((sum, at, axis) => sum + at * strides[axis], 0);
    const y = ctx.output(0, dims);
    stridedCopy(
      ctx,
      x,
      { offset, strides: strides.map((stride, axis) => stride * step[axis]) },
      y,
      { strides: stridesOf(dims) },
      dims,
    );
  },
};

export default [slice];
