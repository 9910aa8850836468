// Clip: the bounds are numbers if they are constants (host inputs), otherwise tensors of one element.
import { type Context, type Kernel, KernelError, type Spec, type Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { computeType, elementwise, elementwiseShader, integerRange, mathFunctions, NUMBERS } from '../../wgsl';

interface ClipSpec extends Spec {
  readonly lowest: boolean;
  readonly highest: boolean;
}

// Not clamp(): if the lower bound exceeds the upper one, ONNX requires the upper one.
const CLIP = elementwiseShader<ClipSpec>('clip', ({ operands, lowest, highest }) => {
  const parameters = operands.map(({ name }) => `${name}: T`).join(', ');
  const clipped = `min(max(x, ${lowest ? 'low' : 'T(u.low)'}), ${highest ? 'high' : 'T(u.high)'})`;
  const float = computeType(operands[0].storage) === 'f32';
  return `${float ? mathFunctions('or_nan') : ''}
fn apply(${parameters}) -> R { return ${float ? `or_nan(${clipped}, x)` : clipped}; }`;
});

/** onnxruntime's bound if none is given: the largest finite number of the type, to which infinities are clipped. */
const LARGEST: { readonly [dtype: number]: number } = {
  [DType.float32]: 3.4028234663852886e38,
  [DType.float16]: 65504,
};

interface Bound {
  readonly value: number;
  /** Set if the bound is a tensor on the GPU. */
  readonly tensor?: Tensor;
}

function bound(ctx: Context, i: number, otherwise: number): Bound {
  const tensor = ctx.inputs[i];
  if (!tensor) return { value: otherwise };
  if (tensor.size !== 1)
    throw new KernelError(`Clip wants one number as its input ${i}, not a tensor of shape [${tensor.dims}]`);
  if (tensor.location === 'gpu') return { value: otherwise, tensor };
  return { value: ctx.data(i)![0] };
}

const clip: Kernel = {
  op: 'Clip',
  types: [NUMBERS],
  resolve(ctx) {
    const x = ctx.input(0);
    const type = computeType(x.storage);
    const [least, most] = type === 'f32' ? [-LARGEST[x.dtype], LARGEST[x.dtype]] : integerRange(x.dtype);
    const low = bound(ctx, 1, least);
    const high = bound(ctx, 2, most);
    const operands: Record<string, Tensor> = { x };
    if (low.tensor) operands.low = low.tensor;
    if (high.tensor) operands.high = high.tensor;
    // Bounds of int64 may exceed the 32 bits that elements have here.
    const [u_low, u_high] =
      type === 'f32' ? [low.value, high.value] : [low, high].map(({ value }) => Math.min(Math.max(value, least), most));
    const names = ['low', 'high'];
    elementwise(ctx, CLIP, operands, ctx.output(0, x.dims), {
      spec: { lowest: low.tensor !== undefined, highest: high.tensor !== undefined },
      uniforms: { low: u_low, high: u_high },
      f32: type === 'f32' ? names : [],
      i32: type === 'i32' ? names : [],
    });
  },
};

export default [clip];
