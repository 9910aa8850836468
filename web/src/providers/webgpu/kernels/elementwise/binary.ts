// Operators of two tensors, broadcast against each other: each is a row of this table.
import type { DTypeName, Kernel, Spec } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  BOOL,
  broadcastElementwise,
  computeType,
  type Division,
  division,
  divisionText,
  elementwiseShader,
  INTEGERS,
  mathFunctions,
  narrowType,
  NUMBERS,
  quotient,
  wrapped,
} from '../../wgsl';

interface Binary {
  readonly op: string;
  readonly types: readonly DTypeName[];
  /** The result, an expression of a and b: T. */
  readonly wgsl: string;
  /** True if the result is a bool. */
  readonly bool?: boolean;
  /** True if narrow integers may leave their range. */
  readonly wraps?: boolean;
}

const TABLE: readonly Binary[] = [
  { op: 'Add', types: NUMBERS, wgsl: 'a + b', wraps: true },
  { op: 'Sub', types: NUMBERS, wgsl: 'a - b', wraps: true },
  { op: 'Mul', types: NUMBERS, wgsl: 'a * b', wraps: true },
  { op: 'And', types: BOOL, wgsl: 'a & b' },
  { op: 'Or', types: BOOL, wgsl: 'a | b' },
  { op: 'Xor', types: BOOL, wgsl: 'a ^ b' },
  { op: 'BitwiseAnd', types: INTEGERS, wgsl: 'a & b' },
  { op: 'BitwiseOr', types: INTEGERS, wgsl: 'a | b' },
  { op: 'BitwiseXor', types: INTEGERS, wgsl: 'a ^ b' },
  { op: 'Equal', types: [...NUMBERS, ...BOOL], wgsl: 'U(a == b)', bool: true },
  { op: 'Greater', types: NUMBERS, wgsl: 'U(a > b)', bool: true },
  { op: 'GreaterOrEqual', types: NUMBERS, wgsl: 'U(a >= b)', bool: true },
  { op: 'Less', types: NUMBERS, wgsl: 'U(a < b)', bool: true },
  { op: 'LessOrEqual', types: NUMBERS, wgsl: 'U(a <= b)', bool: true },
  { op: 'PRelu', types: NUMBERS, wgsl: 'select(a * b, a, a >= T(0))', wraps: true },
];

interface BinarySpec extends Spec {
  readonly wrap?: DType;
}

function binaryKernel({ op, types, wgsl, bool = false, wraps = false }: Binary): Kernel {
  const stem = op === 'PRelu' ? 'prelu' : op.replace(/([a-z])(?=[A-Z])/g, '$1_').toLowerCase();
  const shader = elementwiseShader<BinarySpec>(
    stem,
    ({ wrap }) => `fn apply(a: T, b: T) -> R { return ${wrapped(wrap, wgsl)}; }`,
  );
  return {
    op,
    types: [types],
    resolve(ctx) {
      const [a, b] = [ctx.input(0), ctx.input(1)];
      const dtype = bool ? DType.bool_ : a.dtype;
      broadcastElementwise(ctx, shader, { a, b }, { dtype, spec: { wrap: wraps ? narrowType(dtype) : undefined } });
    },
  };
}

interface DivSpec extends BinarySpec, Division {}

const DIV = elementwiseShader<DivSpec>(
  'div',
  ({ wrap, ...spec }) => `${divisionText(spec)}
fn apply(a: T, b: T) -> R { return ${wrapped(wrap, quotient(spec, 'a', 'b'))}; }`,
);

const div: Kernel = {
  op: 'Div',
  types: [NUMBERS],
  resolve(ctx) {
    const [a, b] = [ctx.input(0), ctx.input(1)];
    const help = computeType(a.storage) === 'f32' ? division(ctx.device) : {};
    broadcastElementwise(ctx, DIV, { a, b }, { spec: { wrap: narrowType(a.dtype), ...help } });
  },
};

/** The sign of the result is the divisor's with fmod=0, the dividend's with fmod=1. */
interface ModSpec extends Spec {
  readonly fmod: boolean;
}

const MOD = elementwiseShader<ModSpec>('mod', ({ operands, fmod }) => {
  const type = computeType(operands[0].storage);
  if (type === 'u32' || (type === 'i32' && fmod)) return 'fn apply(a: T, b: T) -> R { return a % b; }';
  const towardsDivisor = 'select(r, r + b, (r != T(0)) & ((r < T(0)) != (b < T(0))))';
  if (type === 'i32') return `fn apply(a: T, b: T) -> R { let r = a % b; return ${towardsDivisor}; }`;
  return `${mathFunctions('remainder')}
fn apply(a: T, b: T) -> R { let r = remainder(a, b); return ${fmod ? 'r' : towardsDivisor}; }`;
});

const mod: Kernel<ModSpec> = {
  op: 'Mod',
  types: [NUMBERS],
  attributes: (given) => ({ fmod: given.integer('fmod', 0) !== 0 }),
  resolve: (ctx, spec) => broadcastElementwise(ctx, MOD, { a: ctx.input(0), b: ctx.input(1) }, { spec }),
};

const POW = elementwiseShader<BinarySpec>('pow', ({ operands, wrap }) => {
  const [base, exponent] = operands.map(({ storage }) => computeType(storage));
  if (base === 'f32') return `${mathFunctions('power')}\nfn apply(a: T, b: T_b) -> R { return power(a, F(b)); }`;
  const byMultiplication = `fn whole_power(base: T, exponent: U) -> T {
  var r = T(1);
  var square = base;
  var rest = exponent;
  for (var bit = 0; bit < 32; bit++) {
    r = select(r, r * square, (rest & U(1)) != U(0));
    square *= square;
    rest = rest >> U(1);
  }
  return r;
}`;
  const positive = `whole_power(a, U(${exponent === 'f32' ? 'max(b, F(0.0))' : 'b'}))`;
  if (exponent === 'u32')
    return `${byMultiplication}\nfn apply(a: T, b: T_b) -> R { return ${wrapped(wrap, positive)}; }`;
  // 1 / a^n is a fraction, so 0, unless a is 1 or -1; for a = 0 it is native's conversion of infinity.
  const others =
    base === 'i32'
      ? `r = select(r, select(T(1), T(-1), (I(b) & I(1)) != I(0)), (b < T_b(0)) & (a == T(-1)));
  r = select(r, T(-2147483648), (b < T_b(0)) & (a == T(0)));`
      : '';
  const fraction = exponent === 'f32' ? 'r = select(r, T(power(F(a), b)), floor(b) != b);' : '';
  return `${byMultiplication}\n${exponent === 'f32' ? mathFunctions('power') : ''}
fn apply(a: T, b: T_b) -> R {
  var r = ${positive};
  r = select(r, T(a == T(1)), b < T_b(0));
  ${others}
  ${fraction}
  return ${wrapped(wrap, 'r')};
}`;
});

const pow: Kernel = {
  op: 'Pow',
  types: [NUMBERS],
  resolve(ctx) {
    const [a, b] = [ctx.input(0), ctx.input(1)];
    broadcastElementwise(ctx, POW, { a, b }, { spec: { wrap: narrowType(a.dtype) } });
  },
};

interface ShiftSpec extends BinarySpec {
  readonly left: boolean;
}

// WGSL would use the shift modulo 32. A shift by all bits or more, or a negative one, leaves only the sign.
const SHIFT = elementwiseShader<ShiftSpec>('bit_shift', ({ left, wrap, operands }) => {
  if (!left && computeType(operands[0].storage) === 'i32')
    return 'fn apply(a: T, b: T) -> R { return a >> min(U(b), U(31)); }';
  return `fn apply(a: T, b: T) -> R {
      return select(T(0), ${wrapped(wrap, `a ${left ? '<<' : '>>'} (U(b) & U(31))`)}, U(b) < U(32)); }`;
});

const bitShift: Kernel<boolean> = {
  op: 'BitShift',
  types: [INTEGERS],
  attributes: (given) => given.text('direction', 'LEFT') === 'LEFT',
  resolve(ctx, left) {
    const [a, b] = [ctx.input(0), ctx.input(1)];
    broadcastElementwise(ctx, SHIFT, { a, b }, { spec: { left, wrap: narrowType(a.dtype) } });
  },
};

export default [...TABLE.map(binaryKernel), div, mod, pow, bitShift];
