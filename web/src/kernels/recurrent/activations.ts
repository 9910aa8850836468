// The functions of recurrent gates, by their ONNX names; their parameters are part of the text.
import { KernelError } from '../../jsep/kernel';

interface GateFunction {
  /** WGSL of f(v), with a and b for the parameters. */
  readonly text: string;
  readonly alpha?: number;
  readonly beta?: number;
}

const FUNCTIONS: { readonly [name: string]: GateFunction } = {
  Sigmoid: { text: 'or_nan(1.0 / (1.0 + exp(-v)), v)' },
  Tanh: { text: 'or_nan(tanh(clamp(v, -15.0, 15.0)), v)' },
  Relu: { text: 'or_nan(max(v, 0.0), v)' },
  Affine: { text: 'a * v + b', alpha: 1, beta: 0 },
  LeakyRelu: { text: 'select(a * v, v, v >= 0.0)', alpha: 0.01 },
  ThresholdedRelu: { text: 'select(0.0, v, v > a)', alpha: 1 },
  ScaledTanh: { text: 'or_nan(a * tanh(clamp(b * v, -15.0, 15.0)), v)', alpha: 1, beta: 1 },
  HardSigmoid: { text: 'or_nan(clamp(a * v + b, 0.0, 1.0), v)', alpha: 0.2, beta: 0.5 },
  Elu: { text: 'select(v, a * (exp(v) - 1.0), v < 0.0)', alpha: 1 },
  Softsign: { text: 'v / (1.0 + abs(v))' },
  Softplus: { text: 'or_nan(max(v, 0.0) + log(1.0 + exp(-abs(v))), v)' },
};

/**
 * WGSL expressions in `v`, one for each name, that need or_nan; parameters are handed out in order to the functions
 * that take them.
 */
export function gateFunctions(names: readonly string[], alphas: readonly number[], betas: readonly number[]): string[] {
  const [alpha, beta] = [[...alphas], [...betas]];
  return names.map((name) => {
    const key = Object.keys(FUNCTIONS).find((known) => known.toLowerCase() === name.toLowerCase());
    if (!key) throw new KernelError(`no activation of a recurrent layer is called ${name}`);
    const { text, alpha: a, beta: b } = FUNCTIONS[key];
    const literal = (value: number) => `f32(${value})`;
    return text
      .replace(/\ba\b/g, literal(a === undefined ? 0 : (alpha.shift() ?? a)))
      .replace(/\bb\b/g, literal(b === undefined ? 0 : (beta.shift() ?? b)));
  });
}
