import { toNumbers } from '../jsep/elements';
import { type Kernel } from '../jsep/kernel';
import { DType } from '../schema';
import { computeType, elementwise, elementwiseShader, HOST } from '../wgsl';

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
    // There is no Float16Array in every browser: such a value comes through its bits.
    const value = tensor.dtype === DType.float16 ? fromHalf(tensor.bytes[0] | (tensor.bytes[1] << 8)) : toNumbers(tensor.dtype, tensor.bytes)[0];
    return { dtype: tensor.dtype, value };
  },
  resolve(ctx, { dtype, value }) {
    const y = ctx.output(0, ctx.data(0) ?? [], dtype);
    const type = computeType(y.storage);
    elementwise(ctx, FILL, {}, y, { uniforms: { value }, f32: type === 'f32' ? ['value'] : [], i32: type === 'i32' ? ['value'] : [] });
  },
};

function fromHalf(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

export default [constantOfShape];
