// Elementwise operators: most are WebNN's by another name.
import type { DTypeName } from '../../../contract/kernel';
import { DType } from '../../../schema';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';

const NUMBERS: readonly DTypeName[] = ['float32', 'float16', 'int32', 'int64'];
const BOOL: readonly DTypeName[] = ['bool'];

type Named = { readonly [op: string]: string };
const method =
  (name: string, options?: (call: Call) => object) =>
  (call: Call): Emit =>
  (builder, x) =>
    builder[name](
      ...(x.filter((one) => one !== undefined) as never[]),
      ...((options ? [options(call)] : []) as never[]),
    ) as never;

const UNARY: Named = {
  Abs: 'abs',
  Ceil: 'ceil',
  Cos: 'cos',
  Erf: 'erf',
  Exp: 'exp',
  Floor: 'floor',
  HardSwish: 'hardSwish',
  Identity: 'identity',
  Log: 'log',
  Neg: 'neg',
  Reciprocal: 'reciprocal',
  Relu: 'relu',
  Round: 'roundEven',
  Sigmoid: 'sigmoid',
  Sign: 'sign',
  Sin: 'sin',
  Softplus: 'softplus',
  Softsign: 'softsign',
  Sqrt: 'sqrt',
  Tan: 'tan',
  Tanh: 'tanh',
};

const BINARY: Named = { Add: 'add', Sub: 'sub', Mul: 'mul', Div: 'div', Pow: 'pow' };
const COMPARISONS: Named = {
  Equal: 'equal',
  Greater: 'greater',
  GreaterOrEqual: 'greaterOrEqual',
  Less: 'lesser',
  LessOrEqual: 'lesserOrEqual',
};
const LOGICAL: Named = { And: 'logicalAnd', Or: 'logicalOr', Xor: 'logicalXor', Not: 'logicalNot' };

const alpha =
  (otherwise: number) =>
  ({ attributes }: Call) => ({ alpha: attributes.number('alpha', otherwise) });

const each = (named: Named, of: (op: string, name: string) => MlOperator) =>
  Object.entries(named).map(([op, name]) => of(op, name));

export default [
  ...each(
    UNARY,
    (op, name): MlOperator => ({
      op,
      types: [
        op === 'Identity'
          ? [...NUMBERS, 'uint8', 'int8', 'bool']
          : ['Abs', 'Neg', 'Sign'].includes(op)
            ? NUMBERS
            : FLOATS,
      ],
      emit: method(name),
    }),
  ),
  ...each(BINARY, (op, name): MlOperator => ({ op, types: [op === 'Pow' ? FLOATS : NUMBERS], emit: method(name) })),
  ...each(
    COMPARISONS,
    (op, name): MlOperator => ({
      op,
      types: [NUMBERS],
      result: () => DType.bool_,
      emit: method(name),
    }),
  ),
  ...each(LOGICAL, (op, name): MlOperator => ({ op, types: [BOOL], result: () => DType.bool_, emit: method(name) })),
  { op: 'Elu', types: [FLOATS], emit: method('elu', alpha(1)) },
  { op: 'LeakyRelu', types: [FLOATS], emit: method('leakyRelu', alpha(0.01)) },
  {
    op: 'HardSigmoid',
    types: [FLOATS],
    emit: method('hardSigmoid', ({ attributes }) => ({
      alpha: attributes.number('alpha', 0.2),
      beta: attributes.number('beta', 0.5),
    })),
  },
  { op: 'PRelu', types: [FLOATS], emit: method('prelu') },
  {
    op: 'Gelu',
    types: [FLOATS],
    requires: [{ attribute: 'approximate', values: ['none'], otherwise: 'the tanh form of Gelu' }],
    emit: method('gelu'),
  },
  {
    op: 'Where',
    types: [BOOL, [...NUMBERS, 'uint8', 'int8']],
    result: ({ inputs }) => inputs[1]!.dtype,
    emit: method('where'),
  },
] satisfies MlOperator[];
