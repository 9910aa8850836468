import type { Kernel } from '../../../../contract/kernel';
import { ALL, BOOL, broadcastElementwise, elementwiseShader } from '../../wgsl';

const WHERE = elementwiseShader(
  'where',
  () => 'fn apply(c: T_c, x: T_x, other: T_other) -> R { return select(other, x, c != U(0)); }',
);

const where: Kernel = {
  op: 'Where',
  types: [BOOL, ALL],
  resolve(ctx) {
    const [c, x, other] = [ctx.input(0), ctx.input(1), ctx.input(2)];
    broadcastElementwise(ctx, WHERE, { c, x, other }, { dtype: x.dtype });
  },
};

export default [where];
