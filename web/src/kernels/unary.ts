// Operators that are a function of one element: each is a line of this table.
import type { Attributes } from '../jsep/attributes';
import { type DTypeName, type Kernel, MICROSOFT_DOMAIN, type Spec } from '../jsep/kernel';
import { DType } from '../schema';
import {
  BOOL,
  computeType,
  elementwise,
  elementwiseShader,
  FLOATS,
  INTEGERS,
  type MathName,
  mathFunctions,
  narrowType,
  NUMBERS,
  SIGNED,
  wrapped,
} from '../wgsl';

interface Unary {
  readonly op: string;
  readonly domain?: string;
  /** Float types by default. */
  readonly types?: readonly DTypeName[];
  readonly math?: readonly MathName[];
  /**
   * The result, an expression of x: T; attributes are u.NAME. `integer`, `unsigned`: that of such elements, where it
   * differs from the one above.
   */
  readonly wgsl: string;
  readonly integer?: string;
  readonly unsigned?: string;
  /** Attributes and their defaults. */
  readonly attributes?: { readonly [name: string]: number };
  /** Whether the result is a truth. */
  readonly bool?: boolean;
}

/** 1 + erf(x / sqrt 2), by halves. */
const GELU = '0.5 * x * (1.0 + erf_(x * 0.7071067811865476))';
const GELU_TANH = '0.5 * x * (1.0 + tanh_(0.7978845608028654 * (x + 0.044715 * x * x * x)))';

const TABLE: readonly Unary[] = [
  { op: 'Abs', types: NUMBERS, wgsl: 'abs(x)' },
  { op: 'Acos', math: ['acos_'], wgsl: 'acos_(x)' },
  { op: 'Acosh', math: ['acosh_'], wgsl: 'acosh_(x)' },
  { op: 'Asin', math: ['asin_'], wgsl: 'asin_(x)' },
  { op: 'Asinh', math: ['asinh_'], wgsl: 'asinh_(x)' },
  { op: 'Atan', math: ['atan_'], wgsl: 'atan_(x)' },
  { op: 'Atanh', math: ['atanh_'], wgsl: 'atanh_(x)' },
  { op: 'BitwiseNot', types: INTEGERS, wgsl: '~x' },
  { op: 'Ceil', wgsl: 'ceil(x)' },
  {
    op: 'Celu',
    math: ['expm1', 'plain_zero'],
    attributes: { alpha: 1 },
    wgsl: 'select(plain_zero(x), u.alpha * expm1(x / u.alpha), x < F(0.0))',
  },
  { op: 'Cos', math: ['cos_'], wgsl: 'cos_(x)' },
  { op: 'Cosh', math: ['cosh_'], wgsl: 'cosh_(x)' },
  { op: 'Elu', math: ['expm1'], attributes: { alpha: 1 }, wgsl: 'select(x, u.alpha * expm1(x), x < F(0.0))' },
  { op: 'Erf', math: ['erf_'], wgsl: 'erf_(x)' },
  { op: 'Exp', math: ['exp_'], wgsl: 'exp_(x)' },
  { op: 'Floor', wgsl: 'floor(x)' },
  {
    op: 'HardSigmoid',
    math: ['bounded'],
    attributes: { alpha: 0.2, beta: 0.5 },
    wgsl: 'bounded(u.alpha * x + u.beta, F(0.0), F(1.0))',
  },
  { op: 'HardSwish', wgsl: 'x * clamp(x * 0.16666666666666666 + 0.5, F(0.0), F(1.0))' },
  { op: 'IsNaN', math: ['is_nan'], wgsl: 'U(is_nan(x))', bool: true },
  {
    op: 'IsInf',
    math: ['is_infinite'],
    attributes: { detect_positive: 1, detect_negative: 1 },
    bool: true,
    wgsl: 'U(is_infinite(x)) * U(select(F(u.detect_negative), F(u.detect_positive), x > F(0.0)))',
  },
  { op: 'LeakyRelu', attributes: { alpha: 0.01 }, wgsl: 'select(u.alpha * x, x, x >= F(0.0))' },
  { op: 'Log', math: ['log_'], wgsl: 'log_(x)' },
  { op: 'Mish', math: ['softplus', 'tanh_'], wgsl: 'x * tanh_(softplus(x))' },
  { op: 'Neg', types: [...FLOATS, ...SIGNED], wgsl: '-x' },
  { op: 'Not', types: BOOL, wgsl: '1 - x' },
  { op: 'Reciprocal', wgsl: '1.0 / x' },
  { op: 'Relu', types: [...FLOATS, ...SIGNED], math: ['relu'], wgsl: 'relu(x)', integer: 'max(x, T(0))' },
  { op: 'Round', wgsl: 'round(x)' },
  {
    op: 'Selu',
    math: ['expm1', 'plain_zero'],
    attributes: { alpha: 1.6732632, gamma: 1.0507009 },
    wgsl: 'u.gamma * select(plain_zero(x), u.alpha * expm1(x), x < F(0.0))',
  },
  {
    op: 'Shrink',
    attributes: { bias: 0, lambd: 0.5 },
    wgsl: 'select(select(F(0.0), x - u.bias, x > F(u.lambd)), x + u.bias, x < F(-u.lambd))',
  },
  { op: 'Sigmoid', math: ['sigmoid'], wgsl: 'sigmoid(x)' },
  {
    op: 'Sign',
    types: NUMBERS,
    math: ['or_nan'],
    wgsl: 'or_nan(sign(x), x)',
    integer: 'sign(x)',
    unsigned: 'min(x, T(1))',
  },
  { op: 'Sin', math: ['sin_'], wgsl: 'sin_(x)' },
  { op: 'Sinh', math: ['sinh_'], wgsl: 'sinh_(x)' },
  { op: 'Softplus', math: ['softplus'], wgsl: 'softplus(x)' },
  { op: 'Softsign', wgsl: 'x / (1.0 + abs(x))' },
  { op: 'Sqrt', wgsl: 'sqrt(x)' },
  { op: 'Swish', math: ['sigmoid'], attributes: { alpha: 1 }, wgsl: 'x * sigmoid(u.alpha * x)' },
  { op: 'Tan', math: ['tan_'], wgsl: 'tan_(x)' },
  { op: 'Tanh', math: ['tanh_'], wgsl: 'tanh_(x)' },
  { op: 'ThresholdedRelu', attributes: { alpha: 1 }, wgsl: 'select(F(0.0), x, x > F(u.alpha))' },
  { op: 'Gelu', domain: MICROSOFT_DOMAIN, math: ['erf_'], wgsl: GELU },
  {
    op: 'QuickGelu',
    domain: MICROSOFT_DOMAIN,
    math: ['sigmoid'],
    attributes: { alpha: 1.702 },
    wgsl: 'x * sigmoid(u.alpha * x)',
  },
];

/** Gelu by its attribute: as other programs name it. */
const GELUS: { readonly [op: string]: Unary | undefined } = {
  Gelu: { op: 'Gelu', math: ['erf_'], wgsl: GELU },
  FastGelu: { op: 'FastGelu', math: ['tanh_'], wgsl: GELU_TANH },
};

/**
 * A function of floats for shaders that do more than one thing: `name(x: F, …)`, its attributes being further
 * parameters, in order.
 */
export function unaryFunction(
  op: string,
): { readonly name: string; readonly wgsl: string; readonly math: readonly MathName[] } | undefined {
  const found = GELUS[op] ?? TABLE.find((line) => line.op === op && !line.domain);
  if (!found) return undefined;
  const name = `unary_${stemOf(op)}`;
  const parameters = ['x: F', ...Object.keys(found.attributes ?? {}).map((attribute) => `${attribute}: f32`)];
  const expression = found.wgsl.replace(/\bT\b/g, 'F').replace(/\bu\.(\w+)/g, '$1');
  return { name, math: found.math ?? [], wgsl: `fn ${name}(${parameters.join(', ')}) -> F { return ${expression}; }` };
}

/** IsNaN -> is_nan */
function stemOf(op: string): string {
  return op
    .replace('NaN', 'Nan')
    .replace(/([a-z])(?=[A-Z])/g, '$1_')
    .toLowerCase();
}

interface UnarySpec extends Spec {
  readonly wrap?: DType;
}

function unaryKernel({
  op,
  domain,
  types = FLOATS,
  math = [],
  wgsl,
  integer = wgsl,
  unsigned = integer,
  attributes = {},
  bool = false,
}: Unary): Kernel<Record<string, number>> {
  const shader = elementwiseShader<UnarySpec>(stemOf(op), (spec) => {
    const expression = { f32: wgsl, i32: integer, u32: unsigned }[computeType(spec.operands[0].storage)];
    return `${mathFunctions(...math)}\nfn apply(x: T) -> R { return ${wrapped(spec.wrap, expression)}; }`;
  });
  return {
    op,
    domain,
    types: [types],
    attributes: (given: Attributes) =>
      Object.fromEntries(Object.entries(attributes).map(([name, otherwise]) => [name, given.number(name, otherwise)])),
    resolve(ctx, uniforms) {
      const x = ctx.input(0);
      const y = ctx.output(0, x.dims, bool ? DType.bool_ : x.dtype);
      elementwise(ctx, shader, { x }, y, {
        spec: { wrap: narrowType(y.dtype) },
        uniforms,
        f32: Object.keys(attributes),
      });
    },
  };
}

const GELU_SHADERS = {
  none: elementwiseShader('gelu', () => `${mathFunctions('erf_')}\nfn apply(x: T) -> R { return ${GELU}; }`),
  tanh: elementwiseShader('gelu_tanh', () => `${mathFunctions('tanh_')}\nfn apply(x: T) -> R { return ${GELU_TANH}; }`),
};

const gelu: Kernel<keyof typeof GELU_SHADERS> = {
  op: 'Gelu',
  types: [FLOATS],
  attributes: (given) => (given.text('approximate', 'none') === 'tanh' ? 'tanh' : 'none'),
  resolve(ctx, approximate) {
    const x = ctx.input(0);
    elementwise(ctx, GELU_SHADERS[approximate], { x }, ctx.output(0, x.dims));
  },
};

export default [...TABLE.map(unaryKernel), gelu];
