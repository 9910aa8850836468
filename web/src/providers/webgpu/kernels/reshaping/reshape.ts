// Operators that change a tensor's shape and move no element.
import { type Context, type Kernel, KernelError } from '../../../../contract/kernel';
import { ALL, HOST, normalizeAxes, normalizeAxis, sizeOf } from '../../wgsl';

const reshape: Kernel<boolean> = {
  op: 'Reshape',
  types: [ALL, HOST],
  attributes: (given) => given.integer('allowzero', 0) !== 0,
  resolve(ctx, allowZero) {
    const x = ctx.input(0);
    const wanted = ctx.data(1) ?? [];
    const dims = wanted.map((dim, axis) => {
      if (dim !== 0 || allowZero) return dim;
      if (axis >= x.dims.length)
        throw new KernelError(`Reshape of [${x.dims}] to [${wanted}]: there is no axis ${axis} to take the size of`);
      return x.dims[axis];
    });
    const free = dims.indexOf(-1);
    if (free >= 0) {
      // A copied size counts on both sides, so that -1 can be computed even if the size is 0.
      const copied = (axis: number) => wanted[axis] === 0 && !allowZero;
      const rest = sizeOf(dims.filter((_, axis) => axis !== free && !copied(axis)));
      if (rest === 0) throw new KernelError(`Reshape of [${x.dims}] to [${wanted}]: any size would do for -1`);
      dims[free] = sizeOf(x.dims.filter((_, axis) => !copied(axis))) / rest;
    }
    if (sizeOf(dims) !== x.size || !Number.isInteger(dims[free] ?? 0)) {
      throw new KernelError(`Reshape: the ${x.size} elements of [${x.dims}] do not fit the shape [${wanted}]`);
    }
    ctx.view(0, x, dims);
  },
};

const flatten: Kernel<number> = {
  op: 'Flatten',
  types: [ALL],
  attributes: (given) => given.integer('axis', 1),
  resolve(ctx, axis) {
    const x = ctx.input(0);
    const at = axis === x.dims.length ? axis : normalizeAxis(axis, x.dims.length);
    ctx.view(0, x, [sizeOf(x.dims.slice(0, at)), sizeOf(x.dims.slice(at))]);
  },
};

const squeeze: Kernel = {
  op: 'Squeeze',
  types: [ALL, HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const given = ctx.data(1);
    const axes = given?.length ? normalizeAxes(given, x.dims.length) : undefined;
    const wrong = axes?.find((axis) => x.dims[axis] !== 1);
    if (wrong !== undefined) throw new KernelError(`Squeeze: axis ${wrong} of [${x.dims}] is not 1`);
    ctx.view(
      0,
      x,
      x.dims.filter((dim, axis) => (axes ? !axes.includes(axis) : dim !== 1)),
    );
  },
};

const unsqueeze: Kernel = {
  op: 'Unsqueeze',
  types: [ALL, HOST],
  resolve(ctx) {
    const x = ctx.input(0);
    const given = ctx.data(1) ?? [];
    const rank = x.dims.length + given.length;
    const axes = normalizeAxes(given, rank);
    const rest = [...x.dims];
    ctx.view(
      0,
      x,
      Array.from({ length: rank }, (_, axis) => (axes.includes(axis) ? 1 : rest.shift()!)),
    );
  },
};

const identity = (ctx: Context): void => ctx.view(0, ctx.input(0), ctx.input(0).dims);

export default [
  reshape,
  flatten,
  squeeze,
  unsqueeze,
  { op: 'Identity', types: [ALL], resolve: identity } satisfies Kernel,
];
