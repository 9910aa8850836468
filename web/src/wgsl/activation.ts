// Activations that end another operator (Conv, Gemm, MatMul): the attributes `activation`, `activation_params`,
// `activation_offset` and `residual_last`, and their WGSL.
import { KernelError, type Uniforms } from '../jsep/kernel';
import type { Attributes } from '../jsep/attributes';
import { type Lanes, laneType } from './lanes';
import { orNan } from './math';

/** A function of one element. Its numbers are uniforms, so that one shader serves every LeakyRelu. */
export interface Activation {
  readonly kind: ActivationKind;
  readonly params: readonly number[];
}

/**
 * WGSL of the result: `v` is the value, of type `F` (`I` has integers); u.activation_0 and u.activation_1 are the
 * parameters. A NaN stays one.
 */
const KINDS = {
  // As relu in math.ts, but for -0, which becomes 0.
  relu: 'select(v, F(0.0), bitcast<I>(v) <= I(-8388608))',
  clamp: 'or_v(clamp(v, F(u.activation_0), F(u.activation_1)), v)',
  leaky_relu: 'select(v * u.activation_0, v, v >= F(0.0))',
  hard_sigmoid: 'or_v(clamp(v * u.activation_0 + F(u.activation_1), F(0.0), F(1.0)), v)',
  hard_swish: 'v * clamp(v * (1.0 / 6.0) + F(0.5), F(0.0), F(1.0))',
  sigmoid: 'or_v(1.0 / (1.0 + exp(-v)), v)',
  // tanh of large numbers is NaN where it is made of exponentials.
  tanh: 'or_v(tanh(clamp(v, F(-15.0), F(15.0))), v)',
  elu: 'select(v, u.activation_0 * (exp(v) - 1.0), v < F(0.0))',
  selu: 'u.activation_1 * select(v, u.activation_0 * (exp(v) - 1.0), v < F(0.0))',
  celu: 'select(v, u.activation_0 * (exp(v / u.activation_0) - 1.0), v < F(0.0))',
  thresholded_relu: 'select(F(0.0), v, v > F(u.activation_0))',
  shrink:
    'select(select(F(0.0), v - u.activation_0, v > F(u.activation_1)), v + u.activation_0, v < F(-u.activation_1))',
  softplus: 'or_v(max(v, F(0.0)) + log(1.0 + exp(-abs(v))), v)',
  softsign: 'v / (1.0 + abs(v))',
  swish: 'v / (1.0 + exp(-u.activation_0 * v))',
  gelu: '0.5 * v * (1.0 + gauss_error(v * 0.70710678118654752))',
  gelu_tanh: '0.5 * v * (1.0 + tanh(clamp(0.7978845608028654 * (v + 0.044715 * v * v * v), F(-15.0), F(15.0))))',
  mish: 'v * tanh(min(max(v, F(0.0)) + log(1.0 + exp(-abs(v))), F(15.0)))',
  exp: 'or_v(exp(v), v)',
  abs: 'abs(v)',
  // All that are made of a product and a clamp (see piecewise).
  piecewise: `or_v(select(select(F(1.0), v, u.activation_4 > 0.5)
    * clamp(v * u.activation_0 + F(u.activation_1), F(u.activation_2), F(u.activation_3)),
    v, u.activation_4 < -0.5), v)`,
} as const;
/**
 * With `+`, the last number is added to the result; with `&`, the residual is, instead of to the value (see activated).
 */
export type ActivationKind = `${keyof typeof KINDS}${'' | '+' | '&'}`;

const LARGEST = 3.4028234663852886e38;

/** The names that the attribute may have, and the parameters where it gives none. */
const NAMES: { readonly [name: string]: Activation | undefined } = {
  '': undefined,
  Identity: undefined,
  Relu: { kind: 'relu', params: [] },
  Relu6: { kind: 'clamp', params: [0, 6] },
  Clip: { kind: 'clamp', params: [-LARGEST, LARGEST] },
  LeakyRelu: { kind: 'leaky_relu', params: [0.01] },
  HardSigmoid: { kind: 'hard_sigmoid', params: [0.2, 0.5] },
  HardSwish: { kind: 'hard_swish', params: [] },
  Sigmoid: { kind: 'sigmoid', params: [] },
  Tanh: { kind: 'tanh', params: [] },
  Elu: { kind: 'elu', params: [1] },
  Selu: { kind: 'selu', params: [1.6732632, 1.050701] },
  Celu: { kind: 'celu', params: [1] },
  ThresholdedRelu: { kind: 'thresholded_relu', params: [1] },
  Shrink: { kind: 'shrink', params: [0, 0.5] },
  Softplus: { kind: 'softplus', params: [] },
  Softsign: { kind: 'softsign', params: [] },
  Swish: { kind: 'swish', params: [1] },
  Silu: { kind: 'swish', params: [1] },
  QuickGelu: { kind: 'swish', params: [1.702] },
  Gelu: { kind: 'gelu', params: [] },
  FastGelu: { kind: 'gelu_tanh', params: [] },
  GeluTanh: { kind: 'gelu_tanh', params: [] },
  Mish: { kind: 'mish', params: [] },
  Exp: { kind: 'exp', params: [] },
  Abs: { kind: 'abs', params: [] },
};

export function makeActivation(name: string, given: readonly number[] = []): Activation | undefined {
  if (!(name in NAMES)) throw new KernelError(`no fused activation is called ${name}`, true);
  const known = NAMES[name];
  if (!known) return undefined;
  return { kind: known.kind, params: known.params.map((value, i) => given[i] ?? value) };
}

export function readActivation(attributes: Attributes): Activation | undefined {
  const made = makeActivation(attributes.text('activation', ''), attributes.numbers('activation_params'));
  const offset = attributes.number('activation_offset', 0);
  if (!made) return made;
  const plain = made.kind as keyof typeof KINDS;
  if (offset !== 0) return { kind: `${plain}+`, params: [...made.params, offset] };
  return attributes.integer('residual_last', 0) ? { kind: `${plain}&`, params: made.params } : made;
}

/** Scale, shift and bounds of the clamp; 1: times v, -1: v alone. */
const PIECEWISE: { readonly [kind: string]: ((params: readonly number[]) => readonly number[]) | undefined } = {
  none: () => [1, 0, 0, 0, -1],
  relu: () => [1, 0, 0, Infinity, 0],
  clamp: ([low, high]) => [1, 0, low, high, 0],
  hard_sigmoid: ([alpha, beta]) => [alpha, beta, 0, 1, 0],
  hard_swish: () => [1 / 6, 0.5, 0, 1, 1],
};

/**
 * The activation as one that shares its shader with others and with none at all, where there is such a form: fewer
 * shaders to compile.
 */
export function piecewise(activation: Activation | undefined): Activation | undefined {
  const { kind = 'none', params = [] } = activation ?? {};
  const [, plain, suffix] = /^(.*?)([+&]?)$/.exec(kind)!;
  const made = PIECEWISE[plain]?.(params);
  if (!made) return activation;
  return {
    kind: `piecewise${suffix as '' | '+' | '&'}`,
    params: suffix === '+' ? [...made, params[params.length - 1]] : made,
  };
}

/** WGSL of `fn activate(v: F) -> F` for `lanes` lanes; the identity where there is no activation. */
export function activationText(kind: ActivationKind | undefined, lanes: Lanes): string {
  const [type, integer] = [laneType('f32', lanes), laneType('i32', lanes)];
  const plain = kind?.replace(/[+&]$/, '') as keyof typeof KINDS | undefined;
  // The offset follows the parameters that the text names.
  const own = plain === undefined ? 0 : new Set(KINDS[plain].match(/u\.activation_\d/g)).size;
  const offset = kind?.endsWith('+') ? ` + u.activation_${own}` : '';
  const expression =
    plain === undefined ? 'v' : `${KINDS[plain].replace(/\bF\b/g, type).replace(/\bI\b/g, integer)}${offset}`;
  const needs = plain === 'gelu' ? gaussError(type) : expression.includes('or_v(') ? orNan('or_v', type, integer) : '';
  return `${needs}fn activate(v: ${type}) -> ${type} { return ${expression}; }\n`;
}

/** WGSL of the activation of a sum to which a residual may belong. */
export function activated(kind: ActivationKind | undefined, sum: string, residual: string | undefined): string {
  if (!residual) return `activate(${sum})`;
  return kind?.endsWith('&') ? `activate(${sum}) + ${residual}` : `activate(${sum} + ${residual})`;
}

/** The uniforms that `activationText` reads; all of them are f32. */
export function activationUniforms(activation: Activation | undefined): Uniforms {
  return activation && activation.params.length > 0 ? { activation: activation.params } : {};
}

/** Names for Dispatch.f32: packUniforms takes a field by its name without the index. */
export const ACTIVATION_F32 = ['activation'];

/** Abramowitz and Stegun 7.1.26; the error is below 1.5e-7. */
function gaussError(type: string): string {
  return `fn gauss_error(x: ${type}) -> ${type} {
  let t = 1.0 / (1.0 + 0.3275911 * abs(x));
  let p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return sign(x) * (1.0 - p * exp(-x * x));
}
`;
}
