// The activations of com.microsoft with a bias.
import { type Kernel, MICROSOFT_DOMAIN } from '../../../../contract/kernel';
import type { ScalarFunction } from '../../../../schema/scalar_functions';
import { broadcastElementwise, elementwise, elementwiseShader, FLOATS, mathFunctions } from '../../wgsl';
import { scalarFunction } from '../../wgsl/scalar_functions';

const [GELU, GELU_TANH] = ['Gelu', 'GeluTanh'].map(scalarFunction);
const withBias = (name: string, { wgsl, math }: ScalarFunction) =>
  elementwiseShader(
    name,
    () => `${mathFunctions(...math)}\nfn apply(given: T, bias: T) -> R { let x = given + bias; return ${wgsl}; }`,
  );
const BIAS_GELU = withBias('bias_gelu', GELU);
const FAST_GELU_BIAS = withBias('fast_gelu_bias', GELU_TANH);
const FAST_GELU = elementwiseShader(
  'fast_gelu',
  () => `${mathFunctions(...GELU_TANH.math)}\nfn apply(x: T) -> R { return ${GELU_TANH.wgsl}; }`,
);

const BIAS_ADD = elementwiseShader(
  'bias_add',
  () => 'fn apply(x: T, bias: T, skip: T) -> R { return x + bias + skip; }',
);

const biasGelu: Kernel = {
  op: 'BiasGelu',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve: (ctx) => broadcastElementwise(ctx, BIAS_GELU, { given: ctx.input(0), bias: ctx.input(1) }),
};

const fastGelu: Kernel = {
  op: 'FastGelu',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve(ctx) {
    const x = ctx.input(0);
    const bias = ctx.inputs[1];
    const y = ctx.output(0, x.dims);
    if (!bias) return elementwise(ctx, FAST_GELU, { x }, y);
    // onnxruntime reads the bias flat: element i gets bias[i % length]. The last row may be incomplete; the count
    // limits it.
    const dims = [Math.ceil(x.size / bias.size), bias.size];
    elementwise(ctx, FAST_GELU_BIAS, { given: { ...x, dims }, bias: { ...bias, dims: [bias.size] } }, { ...y, dims });
  },
};

const biasAdd: Kernel = {
  op: 'BiasAdd',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve: (ctx) => broadcastElementwise(ctx, BIAS_ADD, { x: ctx.input(0), bias: ctx.input(1), skip: ctx.input(2) }),
};

export default [biasGelu, fastGelu, biasAdd];
