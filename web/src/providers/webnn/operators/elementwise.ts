// Elementwise operators: most are WebNN's under another name.
import { type DTypeName, MICROSOFT_DOMAIN } from '../../../contract/kernel';
import { DType } from '../../../schema';
import type { Formula } from '../formula';
import type { MlDataType, MlOperand } from '../ml';
import { FLOATS, type MlOperator } from '../operator';
import { axesUpTo, formula } from './shared/calls';
import { NUMBERS } from './shared/types';
const DIVISIBLE: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int8', 'uint8'];
const BOOL: readonly DTypeName[] = ['bool'];
const isFloat = ({ dataType }: MlOperand) => dataType.startsWith('float');

type Rows<T> = { readonly [op: string]: T };
const rows = <T>(named: Rows<T>, of: (op: string, row: T) => Omit<MlOperator, 'op'>): MlOperator[] =>
  Object.entries(named).map(([op, row]) => ({ op, ...of(op, row) }));

/** Functions of one float that WebNN has, too. */
const SAME = 'Ceil Cos Erf Exp Floor HardSwish Log Reciprocal Sigmoid Sin Softsign Sqrt Tan Tanh Gelu'.split(' ');

type OfOne = (f: Formula, x: MlOperand, ...parameters: readonly number[]) => MlOperand;

const plus1Log: OfOne = (f, x) => {
  const sum = f.of('add', x, 1);
  const added = f.of('sub', sum, 1);
  // The quotient corrects the logarithm for the rounding of x; if nothing was rounded, infinity has no quotient.
  const share = f.of('where', f.of('equal', added, x), f.number(x, 1), f.of('div', x, added));
  return f.of('where', f.of('equal', sum, 1), x, f.of('mul', f.of('log', sum), share));
};
const signed = (f: Formula, x: MlOperand, magnitude: MlOperand) => f.of('mul', f.of('sign', x), magnitude);

/** Halves lack the range for it. */
const inFloats =
  (of: OfOne): OfOne =>
  (f, x) =>
    f.cast(of(f, f.cast(x, 'float32')), x.dataType);

/** WebNN's own overflows together with e^x. */
const softplus: OfOne = inFloats((f, x) =>
  f.of('add', f.of('max', x, 0), plus1Log(f, f.of('exp', f.of('neg', f.of('abs', x))))),
);

/** e^|x| overflows before its half does. */
const cosh: OfOne = (f, x) => {
  const root = f.of('exp', f.of('mul', f.of('abs', x), 0.5));
  const half = f.of('mul', f.of('mul', root, 0.5), root);
  return f.of('add', half, f.of('div', f.number(x, 0.25), half));
};

/** Other functions: attributes with their defaults, and a formula. */
const FUNCTIONS: Rows<readonly [Rows<number>, OfOne]> = {
  Round: [{}, (f, x) => f.of('roundEven', x)],
  Elu: [{ alpha: 1 }, (f, x, alpha) => f.plain('elu', x, { alpha })],
  Selu: [
    { alpha: 1.6732631921768188, gamma: 1.0507010221481323 },
    (f, x, alpha, gamma) => f.of('mul', f.plain('elu', x, { alpha }), gamma),
  ],
  Celu: [{ alpha: 1 }, (f, x, alpha) => f.of('mul', f.of('elu', f.of('div', x, alpha)), alpha)],
  LeakyRelu: [{ alpha: 0.01 }, (f, x, alpha) => f.plain('leakyRelu', x, { alpha })],
  HardSigmoid: [{ alpha: 0.2, beta: 0.5 }, (f, x, alpha, beta) => f.plain('hardSigmoid', x, { alpha, beta })],
  ThresholdedRelu: [{ alpha: 1 }, (f, x, alpha) => f.of('where', f.of('greater', x, alpha), x, f.number(x, 0))],
  Shrink: [
    { bias: 0, lambd: 0.5 },
    (f, x, bias, lambd) => {
      const above = f.of('where', f.of('greater', x, lambd), f.of('sub', x, bias), f.number(x, 0));
      return f.of('where', f.of('lesser', x, -lambd), f.of('add', x, bias), above);
    },
  ],
  Softplus: [{}, softplus],
  Mish: [{}, (f, x) => f.of('mul', x, f.of('tanh', softplus(f, x)))],
  Swish: [{ alpha: 1 }, (f, x, alpha) => f.of('mul', x, f.of('sigmoid', f.of('mul', x, alpha)))],
  Cosh: [{}, cosh],
  Sinh: [{}, (f, x) => f.of('mul', f.of('tanh', x), cosh(f, x))],
  Asinh: [
    {},
    inFloats((f, x) => {
      const size = f.of('abs', x);
      const bounded = f.of('min', size, 1e9);
      const root = f.of('sqrt', f.of('add', f.of('mul', bounded, bounded), 1));
      const ratio = f.of('div', bounded, f.of('add', root, 1));
      return signed(f, x, plus1Log(f, f.of('add', size, f.of('mul', size, ratio))));
    }),
  ],
  Acosh: [
    {},
    inFloats((f, x) => {
      const less = f.of('sub', x, 1);
      return plus1Log(f, f.of('add', less, f.of('mul', f.of('sqrt', less), f.of('sqrt', f.of('add', x, 1)))));
    }),
  ],
  Atanh: [
    {},
    inFloats((f, x) => {
      const size = f.of('abs', x);
      const odds = f.of('div', f.of('mul', size, 2), f.of('sub', f.number(x, 1), size));
      return signed(f, x, f.of('mul', plus1Log(f, odds), 0.5));
    }),
  ],
};

const tanhGelu = (f: Formula, x: MlOperand) => {
  const cube = f.of('mul', f.of('mul', f.of('mul', x, x), x), 0.044715);
  return f.of('mul', x, f.of('sigmoid', f.of('mul', f.of('add', x, cube), 1.5957691216057308)));
};

const BINARY: Rows<readonly [string, number, readonly DTypeName[]]> = {
  Add: ['add', 6, NUMBERS],
  Sub: ['sub', 6, NUMBERS],
  Mul: ['mul', 6, NUMBERS],
  Div: ['div', 5, DIVISIBLE],
};
const COMPARISONS: Rows<string> = {
  Equal: 'equal',
  Greater: 'greater',
  GreaterOrEqual: 'greaterOrEqual',
  Less: 'lesser',
  LessOrEqual: 'lesserOrEqual',
};
const LOGICAL: Rows<string> = { And: 'logicalAnd', Or: 'logicalOr', Xor: 'logicalXor' };

/** In wider numbers, if necessary. */
const widened = (parts: (f: Formula, x: readonly MlOperand[]) => MlOperand) =>
  formula((f, x) =>
    f.cast(
      parts(
        f,
        x.map((one) => f.wide(one)),
      ),
      x.at(-1)!.dataType,
    ),
  );

/** Division of integers rounds towards zero; the remainder has the divisor's sign, or the dividend's (`fmod`). */
const modulo = (fmod: boolean) =>
  widened((f, [a, b]) => {
    const rest = f.of('sub', a, f.of('mul', f.of('div', a, b), b));
    if (fmod) return rest;
    const apart = f.of('logicalAnd', f.of('notEqual', rest, 0), f.of('lesser', f.of('mul', f.of('sign', rest), b), 0));
    return f.of('add', rest, f.of('where', apart, b, f.number(b, 0)));
  });

/** Bounds that are not constants are operands. */
const clip: MlOperator['emit'] = (call) => {
  const [least, most] = [1, 2].map((i) => call.data(i)?.[0]);
  return formula((f, [x, low, high]) => {
    const [minValue, maxValue] = [least ?? low, most ?? high];
    if (isFloat(x) && !low && !high && !((least ?? -Infinity) > (most ?? Infinity)))
      return f.flat(x, (one) =>
        f.plain('clamp', one, { ...(least !== undefined && { minValue }), ...(most !== undefined && { maxValue }) }),
      );
    const from = minValue === undefined ? x : f.of('max', x, minValue);
    return maxValue === undefined ? from : f.of('min', from, maxValue);
  })(call);
};

/** By ONNX's numbers. */
const CASTS: { readonly [dtype: number]: MlDataType } = {
  [DType.float32]: 'float32',
  [DType.float16]: 'float16',
  [DType.int64]: 'int64',
  [DType.int32]: 'int32',
  [DType.uint32]: 'uint32',
  [DType.int8]: 'int8',
  [DType.uint8]: 'uint8',
};
const TO = [...Object.keys(CASTS).map(Number), DType.bool_];

export default [
  ...rows(Object.fromEntries(SAME.map((op) => [op, op[0].toLowerCase() + op.slice(1)])), (op, name) => ({
    types: [FLOATS],
    emit: formula((f, [x], { attributes }) =>
      op === 'Gelu' && attributes.text('approximate', 'none') === 'tanh'
        ? tanhGelu(f, x)
        : f.flat(x, (one) => f.of(name, one)),
    ),
  })),
  ...rows(FUNCTIONS, (_, [defaults, of]) => ({
    types: [FLOATS],
    emit: formula((f, [x], { attributes }) =>
      f.flat(x, (one) =>
        of(f, one, ...Object.entries(defaults).map(([name, given]) => attributes.number(name, given))),
      ),
    ),
  })),
  { op: 'Identity', types: [[...NUMBERS, 'bool']], emit: formula((f, [x]) => f.plain('reshape', x, [...x.shape])) },
  {
    op: 'Abs',
    types: [NUMBERS],
    emit: widened((f, [x]) => (x.dataType === 'int64' ? f.of('max', x, f.of('neg', x)) : f.of('abs', x))),
  },
  { op: 'Neg', types: [NUMBERS], emit: widened((f, [x]) => f.of('neg', x)) },
  {
    op: 'Sign',
    types: [NUMBERS],
    emit: widened((f, [x]) => (isFloat(x) ? f.of('sign', x) : f.of('min', f.of('max', x, -1), 1))),
  },
  { op: 'Relu', types: [NUMBERS], emit: widened((f, [x]) => f.flat(x, (one) => f.of('relu', one))) },
  { op: 'Not', types: [BOOL], emit: formula((f, [x]) => f.of('logicalNot', x)) },
  ...rows(BINARY, (_, [name, most, types]) => ({
    types: [types],
    requires: axesUpTo(most, 0, 1),
    emit: widened((f, [a, b]) => f.of(name, a, b)),
  })),
  {
    op: 'Pow',
    types: [FLOATS, [...FLOATS, 'int32', 'int64']],
    requires: axesUpTo(4, 0, 1),
    emit: formula((f, [a, b]) => f.of('pow', a, f.cast(b, a.dataType))),
  },
  {
    op: 'Mod',
    types: [['int32', 'int8', 'uint8']],
    requires: axesUpTo(4, 0, 1),
    emit: (call) => modulo(call.attributes.integer('fmod', 0) === 1)(call),
  },
  ...rows(COMPARISONS, (_, name) => ({
    types: [[...NUMBERS, 'bool']],
    requires: axesUpTo(4, 0, 1),
    result: () => DType.bool_,
    emit: formula((f, [a, b]) => f.of(name, f.wide(a), f.wide(b))),
  })),
  ...rows(LOGICAL, (_, name) => ({
    types: [BOOL],
    requires: axesUpTo(4, 0, 1),
    emit: formula((f, [a, b]) => f.of(name, a, b)),
  })),
  ...rows({ Max: 'max', Min: 'min', Sum: 'add' }, (op, name) => ({
    types: [op === 'Sum' ? FLOATS : NUMBERS],
    requires: axesUpTo(5, 0, 1, 2, 3),
    emit: widened((f, x) => x.reduce((one, other) => f.of(name, one, other))),
  })),
  {
    op: 'Mean',
    types: [FLOATS],
    requires: axesUpTo(5, 0, 1, 2, 3),
    emit: formula((f, x) =>
      f.of(
        'div',
        x.reduce((one, other) => f.of('add', one, other)),
        x.length,
      ),
    ),
  },
  {
    op: 'Clip',
    types: [['float32', 'float16', 'int32', 'int64', 'int8', 'uint8']],
    requires: axesUpTo(5, 0),
    emit: clip,
  },
  { op: 'PRelu', types: [FLOATS], requires: axesUpTo(4, 0), emit: formula((f, [x, slope]) => f.of('prelu', x, slope)) },
  {
    op: 'Where',
    types: [BOOL, [...NUMBERS, 'bool']],
    requires: axesUpTo(5, 0, 1, 2),
    result: ({ inputs }) => inputs[1]!.dtype,
    emit: formula((f, [condition, a, b]) => f.cast(f.of('where', condition, f.wide(a), f.wide(b)), a.dataType)),
  },
  {
    op: 'Cast',
    types: [[...NUMBERS, 'bool']],
    requires: [{ attribute: 'to', values: TO, otherwise: 'this type of result' }],
    result: ({ attributes }) => attributes.integer('to', 0),
    emit: formula((f, [x], { attributes }) => {
      const type = CASTS[attributes.integer('to', 0)];
      return type ? f.plain('cast', x, type) : f.flat(f.wide(x), (one) => f.of('notEqual', one, 0));
    }),
  },
  {
    op: 'IsNaN',
    types: [FLOATS],
    result: () => DType.bool_,
    emit: formula((f, [x]) => f.flat(x, (one) => f.of('isNaN', one))),
  },
  {
    op: 'IsInf',
    types: [FLOATS],
    result: () => DType.bool_,
    emit: formula((f, [x], { attributes }) =>
      f.flat(x, (one) => {
        const [less, more] = ['negative', 'positive'].map((side) => attributes.integer(`detect_${side}`, 1));
        const infinite = f.of('isInfinite', one);
        if (less && more) return infinite;
        if (!less && !more) return f.of('logicalXor', infinite, infinite);
        return f.of('logicalAnd', infinite, f.of(less ? 'lesser' : 'greater', one, 0));
      }),
    ),
  },
  ...rows({ QuickGelu: 1.702 }, (_, alpha) => ({
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS],
    emit: formula((f, [x], { attributes }) =>
      f.of(
        'mul',
        x,
        f.flat(f.of('mul', x, attributes.number('alpha', alpha)), (one) => f.of('sigmoid', one)),
      ),
    ),
  })),
  ...rows({ Gelu: 'gelu', BiasGelu: 'gelu', FastGelu: '' }, (_, name) => ({
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS],
    requires: axesUpTo(6, 0),
    emit: formula((f, [x, bias]) => {
      const sum = bias ? f.of('add', x, bias) : x;
      return name ? f.of(name, sum) : tanhGelu(f, sum);
    }),
  })),
] satisfies MlOperator[];
