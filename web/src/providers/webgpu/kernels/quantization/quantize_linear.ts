// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; DynamicFakeQuantize, which is the last two in one.
import { typeName } from '../../../../contract/elements';
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  type Division,
  division,
  divisionText,
  elementwise,
  elementwiseShader,
  FLOATS,
  integerRange,
  linearMain,
  linearWorkgroups,
  normalizeAxis,
  quotient,
  sizeOf,
} from '../../wgsl';
import { dynamicSteps } from './dynamic_steps';
import { Dialect } from '../../../../schema/dialect';

const QUANTIZED = ['uint8', 'int8', 'uint16', 'int16', 'int32'] as const;

interface QuantizeAttributes {
  readonly axis: number;
  readonly block: number;
  readonly dtype: DType;
}

/**
 * A tensor viewed with more axes, so that its scale broadcasts: one scale for all, one per index of the axis, or one
 * per block of it.
 */
function scaled(
  ctx: Context,
  x: Tensor,
  scale: Tensor,
  zero: Tensor | undefined,
  { axis: given, block }: QuantizeAttributes,
): { dims: number[]; scale: Tensor; zero?: Tensor } {
  const shaped = (dims: readonly number[], target: readonly number[]) => ({
    dims: [...dims],
    scale: ctx.reshape(scale, target),
    ...(zero ? { zero: ctx.reshape(zero, target) } : {}),
  });
  if (scale.size === 1) return shaped([x.size], [1]);
  const axis = normalizeAxis(given, x.dims.length);
  const [before, after] = [sizeOf(x.dims.slice(0, axis)), sizeOf(x.dims.slice(axis + 1))];
  if (scale.dims.length === 1 && !block) {
    if (scale.size !== x.dims[axis])
      throw new KernelError(`${scale.size} scales for the ${x.dims[axis]} indices of axis ${axis} of [${x.dims}]`);
    return shaped([before, x.dims[axis], after], [1, scale.size, 1]);
  }
  const blocks = scale.dims[axis];
  const length = block || x.dims[axis] / blocks;
  if (scale.dims.length !== x.dims.length || Math.ceil(x.dims[axis] / length) !== blocks)
    throw new KernelError(`blocks of ${length} do not divide axis ${axis} of [${x.dims}] into ${blocks}`);
  if (length * blocks === x.dims[axis]) return shaped([before, blocks, length, after], [before, blocks, 1, after]);
  // The last block is shorter: gives every element the scale of its block.
  const dims = [before, x.dims[axis], after];
  const repeated = (tensor: Tensor): Tensor => {
    const target = ctx.temp(dims, tensor.dtype);
    ctx.dispatch({
      shader: REPEAT_BLOCKS,
      spec: { type: tensor.storage },
      inputs: { x: tensor },
      outputs: { y: target },
      uniforms: { count: target.size, after, size: x.dims[axis], blocks, length },
      workgroups: linearWorkgroups(target.size, ctx.device),
    });
    return target;
  };
  return { dims, scale: repeated(scale), ...(zero ? { zero: repeated(zero) } : {}) };
}

const REPEAT_BLOCKS: Shader<{ readonly type: StorageType }> = {
  name: 'repeat_blocks',
  wgsl: () =>
    linearMain(`  let rest = i / u.after;
  y[i] = x[(rest / u.size * u.blocks + rest % u.size / u.length) * u.after + i % u.after];`),
};

interface QuantizeSpec extends Division {
  readonly dtype: DType;
  readonly zero: boolean;
}

const QUANTIZE = elementwiseShader<QuantizeSpec>('quantize_linear', (spec) => {
  const { dtype, zero } = spec;
  const [least, most] = integerRange(dtype);
  return `${divisionText(spec)}
fn apply(x: F, scale: F${zero ? ', zero: T_zero' : ''}) -> R {
  return R(clamp(round(${quotient(spec, 'x', 'scale')})${zero ? ' + F(zero)' : ''}, F(${least}), F(${most})));
}`;
});

const quantizeLinear: Kernel<QuantizeAttributes> = {
  op: 'QuantizeLinear',
  types: [FLOATS, FLOATS, QUANTIZED],
  attributes: quantizeAttributes,
  resolve(ctx, attributes) {
    const [x, scale, zero] = [ctx.input(0), ctx.input(1), ctx.inputs[2]];
    const dtype = zero?.dtype ?? (attributes.dtype || DType.uint8);
    if (!QUANTIZED.some((name) => name === typeName(dtype)))
      throw new KernelError(`QuantizeLinear to ${typeName(dtype)}`);
    const y = ctx.output(0, x.dims, dtype);
    const view = scaled(ctx, x, scale, zero, attributes);
    const operands = { x: ctx.reshape(x, view.dims), scale: view.scale, ...(view.zero ? { zero: view.zero } : {}) };
    elementwise(ctx, QUANTIZE, operands, ctx.reshape(y, view.dims), {
      spec: { dtype, zero: zero !== undefined, ...division(ctx.device) },
    });
  },
};

const DEQUANTIZE = elementwiseShader<{ readonly zero: boolean }>(
  'dequantize_linear',
  ({ zero }) =>
    `fn apply(x: T, scale: F${zero ? ', zero: T' : ''}) -> R { return (F(x)${zero ? ' - F(zero)' : ''}) * scale; }`,
);

export const dequantizeLinear: Kernel<QuantizeAttributes> = {
  op: 'DequantizeLinear',
  types: [QUANTIZED, FLOATS, QUANTIZED],
  attributes: quantizeAttributes,
  resolve(ctx, attributes) {
    const [x, scale, zero] = [ctx.input(0), ctx.input(1), ctx.inputs[2]];
    const y = ctx.output(0, x.dims, attributes.dtype || scale.dtype);
    const view = scaled(ctx, x, scale, zero, attributes);
    const operands = { x: ctx.reshape(x, view.dims), scale: view.scale, ...(view.zero ? { zero: view.zero } : {}) };
    elementwise(ctx, DEQUANTIZE, operands, ctx.reshape(y, view.dims), { spec: { zero: zero !== undefined } });
  },
};

function quantizeAttributes(given: Parameters<NonNullable<Kernel['attributes']>>[0]): QuantizeAttributes {
  return {
    axis: given.integer('axis', 1),
    block: given.integer('block_size', 0),
    dtype: given.integer('output_dtype', 0),
  };
}

export const dynamicQuantizeLinear: Kernel = {
  op: 'DynamicQuantizeLinear',
  types: [['float32']],
  resolve(ctx) {
    const x = ctx.input(0);
    const y = ctx.output(0, x.dims, DType.uint8);
    const scale = ctx.output(1, [], DType.float32);
    const zero = ctx.output(2, [], DType.uint8);
    dynamicSteps(ctx, x, scale, zero);
    elementwise(ctx, QUANTIZE, { x, scale, zero }, y, {
      spec: { dtype: DType.uint8, zero: true, ...division(ctx.device) },
    });
  },
};

const FAKE = elementwiseShader<Division>(
  'dynamic_fake_quantize',
  (spec) => `${divisionText(spec)}
fn apply(x: F, scale: F, zero: T_zero) -> R {
  return (clamp(round(${quotient(spec, 'x', 'scale')}) + F(zero), F(0.0), F(255.0)) - F(zero)) * scale;
}`,
);

/** x, rounded to the steps of its quantization. */
export function fakeQuantized(ctx: Context, x: Tensor, y = ctx.temp(x.dims, x.dtype)): Tensor {
  const [scale, zero] = [ctx.temp([], DType.float32), ctx.temp([], DType.uint8)];
  dynamicSteps(ctx, x, scale, zero);
  elementwise(ctx, FAKE, { x, scale, zero }, y, { spec: division(ctx.device) });
  return y;
}

const dynamicFakeQuantize: Kernel = {
  op: Dialect.DYNAMIC_FAKE_QUANTIZE,
  domain: Dialect.INTERNAL_DOMAIN,
  types: [['float32']],
  resolve: (ctx) => void fakeQuantized(ctx, ctx.input(0), ctx.output(0, ctx.input(0).dims)),
};

export default [quantizeLinear, dequantizeLinear, dynamicQuantizeLinear, dynamicFakeQuantize];
