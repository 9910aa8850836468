// The activations of com.microsoft that take a bias.
import { type Kernel, MICROSOFT_DOMAIN } from '../jsep/kernel';
import { broadcastElementwise, elementwise, elementwiseShader, FLOATS, mathFunctions } from '../wgsl';

const BIAS_GELU = elementwiseShader(
  'bias_gelu',
  () => `${mathFunctions('erf_')}
fn apply(x: T, bias: T) -> R { let z = x + bias; return 0.5 * z * (1.0 + erf_(z * 0.7071067811865476)); }`,
);

const tanhGelu = (z: string): string =>
  `let z = ${z}; return 0.5 * z * (1.0 + tanh_(0.7978845608028654 * (z + 0.044715 * z * z * z)));`;
const FAST_GELU = elementwiseShader(
  'fast_gelu',
  () => `${mathFunctions('tanh_')}\nfn apply(x: T) -> R { ${tanhGelu('x')} }`,
);
const FAST_GELU_BIAS = elementwiseShader(
  'fast_gelu_bias',
  () => `${mathFunctions('tanh_')}\nfn apply(x: T, bias: T) -> R { ${tanhGelu('x + bias')} }`,
);

const BIAS_ADD = elementwiseShader(
  'bias_add',
  () => 'fn apply(x: T, bias: T, skip: T) -> R { return x + bias + skip; }',
);

const biasGelu: Kernel = {
  op: 'BiasGelu',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve: (ctx) => broadcastElementwise(ctx, BIAS_GELU, { x: ctx.input(0), bias: ctx.input(1) }),
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
    // onnxruntime reads the bias flat: element i gets bias[i % length]. The last row need not be whole, the count ends
    // it.
    const dims = [Math.ceil(x.size / bias.size), bias.size];
    elementwise(ctx, FAST_GELU_BIAS, { x: { ...x, dims }, bias: { ...bias, dims: [bias.size] } }, { ...y, dims });
  },
};

const biasAdd: Kernel = {
  op: 'BiasAdd',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve: (ctx) => broadcastElementwise(ctx, BIAS_ADD, { x: ctx.input(0), bias: ctx.input(1), skip: ctx.input(2) }),
};

export default [biasGelu, fastGelu, biasAdd];
