// Concat of any number of tensors: of more than one shader reads, parts come first.
import type { Context, Kernel, Tensor } from '../../../contract/kernel';
import { normalizeAxis } from '../../../contract/shape';
import { joining } from '../../webgpu/kernels/joining/concat';

type Attributes = Parameters<typeof joining.resolve>[1];

/** Tensors that one dispatch joins. */
const AT_ONCE = 8;

const concat: Kernel<Attributes> = {
  ...joining,
  features: [],
  resolve(ctx: Context, attributes) {
    const tensors = ctx.inputs.map((_, i) => ctx.input(i));
    if (tensors.length <= AT_ONCE) return joining.resolve(ctx, attributes);
    const axis = normalizeAxis(attributes.axis, tensors[0].dims.length);
    const joinedDims = (parts: readonly Tensor[]) =>
      parts[0].dims.map((dim, k) => (k === axis ? parts.reduce((sum, part) => sum + part.dims[axis], 0) : dim));
    let parts = tensors;
    while (parts.length > AT_ONCE) {
      const groups = Array.from({ length: Math.ceil(parts.length / AT_ONCE) }, (_, i) =>
        parts.slice(i * AT_ONCE, (i + 1) * AT_ONCE),
      );
      parts = groups.map((group) => {
        if (group.length === 1) return group[0];
        const part = ctx.temp(joinedDims(group), group[0].dtype);
        ctx.call(joining, attributes, group, [part]);
        return part;
      });
    }
    ctx.call(joining, attributes, parts, [ctx.output(0, joinedDims(parts))]);
  },
};

export default [concat];
