import { toNumbers } from '../../../../contract/elements';
import type { Kernel } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { computeType, elementwise, elementwiseShader, HOST } from '../../wgsl';

const FILL = elementwiseShader('constant_of_shape', () => 'fn apply() -> R { return R(u.value); }');

interface Constant {
  readonly dtype: DType;
  readonly value: number;
}

const constantOfShape: Kernel<Constant> = {
  op: 'ConstantOfShape',
  types: [HOST],
  attributes(given) {
    const tensor = given.tensor('value');
    if (!tensor) return { dtype: DType.float32, value: 0 };
    return { dtype: tensor.dtype, value: toNumbers(tensor.dtype, tensor.bytes)[0] };
  },
  resolve(ctx, { dtype, value }) {
    const y = ctx.output(0, ctx.data(0) ?? [], dtype);
    const type = computeType(y.storage);
    elementwise(ctx, FILL, {}, y, {
      uniforms: { value },
      f32: type === 'f32' ? ['value'] : [],
      i32: type === 'i32' ? ['value'] : [],
    });
  },
};

export default [constantOfShape];
