// Max, Min, Sum and Mean of any number of tensors, broadcast against each other.
import type { Context, Kernel, Spec, Tensor } from '../../../../contract/kernel';
import type { DType } from '../../../../schema';
import {
  broadcastDims,
  computeType,
  elementwise,
  elementwiseShader,
  FLOATS,
  mathFunctions,
  narrowType,
  NUMBERS,
  wrapped,
} from '../../wgsl';

interface VariadicSpec extends Spec {
  readonly op: keyof typeof COMBINE;
  readonly wrap?: DType;
}

/** Combines two floats; a NaN stays. */
const COMBINE = {
  max: 'select(max(a, b), a + b, is_nan(a) | is_nan(b))',
  min: 'select(min(a, b), a + b, is_nan(a) | is_nan(b))',
  sum: 'a + b',
} as const;

const SHADERS = {
  max: variadicShader('max'),
  min: variadicShader('min'),
  sum: variadicShader('sum'),
};

function variadicShader(name: keyof typeof COMBINE) {
  return elementwiseShader<VariadicSpec>(name, ({ op, operands, wrap }) => {
    const names = operands.map((operand) => operand.name);
    const float = computeType(operands[0].storage) === 'f32';
    const two = float ? COMBINE[op] : { max: 'max(a, b)', min: 'min(a, b)', sum: 'a + b' }[op];
    const all = names.slice(1).reduce((sofar, operand) => `combine(${sofar}, ${operand})`, names[0]);
    return `${float ? mathFunctions('is_nan') : ''}
fn combine(a: T, b: T) -> T { return ${two}; }
fn apply(${names.map((operand) => `${operand}: T`).join(', ')}) -> R {
  return ${op === 'sum' && float ? `(${all}) * u.scale` : wrapped(wrap, all)}; }`;
  });
}

/** Combines as many tensors as one dispatch may bind, then the others. */
function combineAll(
  ctx: Context,
  op: keyof typeof COMBINE,
  tensors: readonly Tensor[],
  output: Tensor,
  scale: number,
): void {
  const most = Math.min(8, ctx.device.maxStorageBuffersPerStage - 1);
  const now = tensors.slice(0, most);
  const rest = tensors.slice(most);
  const last = rest.length === 0;
  const target = last ? output : ctx.temp(broadcastDims(...now.map(({ dims }) => dims)), output.dtype);
  const operands = Object.fromEntries(now.map((tensor, k) => [`x${k}`, tensor]));
  elementwise(ctx, SHADERS[op], operands, target, {
    spec: { op, wrap: narrowType(output.dtype) },
    uniforms: { scale: last ? scale : 1 },
    f32: ['scale'],
  });
  if (!last) combineAll(ctx, op, [target, ...rest], output, scale);
}

function variadicKernel(op: string, combine: keyof typeof COMBINE, types: Kernel['types']): Kernel {
  return {
    op,
    types,
    resolve(ctx) {
      const tensors = ctx.inputs.map((_, i) => ctx.input(i));
      const dims = broadcastDims(...tensors.map((tensor) => tensor.dims));
      if (tensors.length === 1) ctx.view(0, tensors[0], dims);
      else combineAll(ctx, combine, tensors, ctx.output(0, dims), op === 'Mean' ? 1 / tensors.length : 1);
    },
  };
}

export default [
  variadicKernel('Max', 'max', [NUMBERS]),
  variadicKernel('Min', 'min', [NUMBERS]),
  variadicKernel('Sum', 'sum', [FLOATS]),
  variadicKernel('Mean', 'sum', [FLOATS]),
];
