// ai.onnx.preview.training: Adagrad, Adam, Momentum. Inputs R, T, then all X, all their gradients, and each one's
// accumulators.
import { type DTypeName, type Kernel, KernelError, type Shader, type Spec } from '../../../../contract/kernel';
import { HOST, linearMain, linearWorkgroups } from '../../wgsl';

interface Method {
  readonly op: string;
  /** Accumulators of each tensor. */
  readonly accumulators: number;
  /** WGSL from x, g (the gradient, regularised), a0, a1 to `let y`, `let n0` and `let n1`. */
  readonly update: (nesterov: boolean) => string;
  /** The rate that the update uses. */
  readonly rate: (rate: number, step: number, given: Numbers) => number;
}

interface Numbers {
  readonly alpha: number;
  readonly beta: number;
  readonly epsilon: number;
  readonly decay: number;
  readonly norm: number;
  readonly normPost: number;
  readonly nesterov: boolean;
}

const METHODS: readonly Method[] = [
  {
    op: 'Adagrad',
    accumulators: 1,
    update: () => 'let n0 = a0 + g * g;\n  let y = x - u.rate * g / (sqrt(n0) + u.epsilon);',
    rate: (rate, step, { decay }) => rate / (1 + step * decay),
  },
  {
    op: 'Adam',
    accumulators: 2,
    update: () => `let n0 = u.alpha * a0 + u.rest_alpha * g;
  let n1 = u.beta * a1 + u.rest_beta * g * g;
  let y = u.kept * (x - u.rate * n0 / (sqrt(n1) + u.epsilon));`,
    rate: (rate, step, { alpha, beta }) =>
      step > 0 ? (rate * Math.sqrt(1 - beta ** step)) / (1 - alpha ** step) : rate,
  },
  {
    op: 'Momentum',
    accumulators: 1,
    // The first step uses the whole gradient: u.beta is 1 there.
    update: (nesterov) =>
      `let n0 = u.alpha * a0 + u.beta * g;\n  let y = x - u.rate * ${nesterov ? '(g + u.alpha * n0)' : 'n0'};`,
    rate: (rate) => rate,
  },
];

interface StepSpec extends Spec {
  readonly nesterov: boolean;
}

function shaderOf({ op, accumulators, update }: Method): Shader<StepSpec> {
  const each = Array.from({ length: accumulators }, (_, k) => k);
  return {
    name: `${op.toLowerCase()}__step`,
    wgsl: ({ nesterov }) =>
      linearMain(`  let x = values[i];
  let g = u.norm * x + gradients[i];
${each.map((k) => `  let a${k} = before_${k}[i];`).join('\n')}
  ${update(nesterov)}
  result[i] = y;
${each.map((k) => `  after_${k}[i] = n${k};`).join('\n')}`),
  };
}

const FLOAT: readonly DTypeName[] = ['float32'];
const F32 = ['rate', 'alpha', 'rest_alpha', 'beta', 'rest_beta', 'epsilon', 'norm', 'kept'];

function kernel(method: Method): Kernel<Numbers> {
  const { op, accumulators } = method;
  const shader = shaderOf(method);
  return {
    op,
    domain: 'ai.onnx.preview.training',
    types: [HOST, HOST, FLOAT],
    attributes: (given) => ({
      alpha: given.number('alpha', 0.9),
      beta: given.number('beta', 0.999),
      epsilon: given.number('epsilon', 1e-6),
      decay: given.number('decay_factor', 0),
      norm: given.number('norm_coefficient', 0),
      normPost: given.number('norm_coefficient_post', 0),
      nesterov: given.text('mode', 'standard') === 'nesterov',
    }),
    resolve(ctx, given) {
      const [rate, step] = [ctx.data(0)?.[0] ?? 0, ctx.data(1)?.[0] ?? 0];
      const tensors = (ctx.inputs.length - 2) / (2 + accumulators);
      if (!Number.isInteger(tensors) || tensors < 1)
        throw new KernelError(`${op} of ${ctx.inputs.length - 2} tensors, which is no multiple of ${2 + accumulators}`);
      const beta = op === 'Momentum' && step <= 0 ? 1 : given.beta;
      for (let t = 0; t < tensors; t++) {
        const [x, gradients, ...before] = Array.from({ length: 2 + accumulators }, (_, role) =>
          ctx.input(2 + role * tensors + t),
        );
        const [result, ...after] = Array.from({ length: 1 + accumulators }, (_, role) =>
          ctx.output(role * tensors + t, x.dims, x.dtype),
        );
        ctx.dispatch({
          shader,
          spec: { nesterov: given.nesterov },
          inputs: { values: x, gradients, ...Object.fromEntries(before.map((tensor, k) => [`before_${k}`, tensor])) },
          outputs: { result, ...Object.fromEntries(after.map((tensor, k) => [`after_${k}`, tensor])) },
          uniforms: {
            count: x.size,
            rate: method.rate(rate, step, given),
            alpha: given.alpha,
            rest_alpha: 1 - given.alpha,
            beta,
            rest_beta: 1 - given.beta,
            epsilon: given.epsilon,
            norm: given.norm,
            kept: 1 - given.normPost,
          },
          f32: F32,
          workgroups: linearWorkgroups(x.size, ctx.device),
        });
      }
    },
  };
}

export default METHODS.map(kernel);
