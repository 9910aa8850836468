// Operators that are a function of one element: each is a row of this table.
import type { Attributes } from '../../../../contract/attributes';
import type { DTypeName, Kernel, Spec } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { SCALAR_FUNCTIONS } from '../../../../schema/scalar_functions';
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
} from '../../wgsl';
import { scalarFunction, withParameters } from '../../wgsl/scalar_functions';

interface Unary {
  readonly op: string;
  readonly domain?: string;
  /** Floats by default. */
  readonly types?: readonly DTypeName[];
  readonly math?: readonly MathName[];
  /**
   * The result, an expression of x: T; attributes are u.NAME. `integer`, `unsigned`: the expression for such elements,
   * if it differs from the one above.
   */
  readonly wgsl: string;
  readonly integer?: string;
  readonly unsigned?: string;
  /** Attributes and their defaults. */
  readonly attributes?: { readonly [name: string]: number };
  /** True if the result is a bool. */
  readonly bool?: boolean;
}

const TYPES = { floats: FLOATS, signed: [...FLOATS, ...SIGNED], numbers: NUMBERS } as const;

const TABLE: readonly Unary[] = [
  ...SCALAR_FUNCTIONS.flatMap((row) =>
    row.domains
      .filter((domain) => domain !== '' || row.name !== 'Gelu')
      .map((domain) => ({
        op: row.name,
        domain,
        types: TYPES[row.types],
        math: row.math,
        wgsl: withParameters(row, (name) => `u.${name}`),
        attributes: row.parameters,
        ...(row.integer && { integer: row.integer, unsigned: row.unsigned }),
      })),
  ),
  { op: 'BitwiseNot', types: INTEGERS, wgsl: '~x' },
  { op: 'Not', types: BOOL, wgsl: '1 - x' },
  { op: 'IsNaN', math: ['is_nan'], wgsl: 'U(is_nan(x))', bool: true },
  {
    op: 'IsInf',
    math: ['is_infinite'],
    attributes: { detect_positive: 1, detect_negative: 1 },
    bool: true,
    wgsl: 'U(is_infinite(x)) * U(select(F(u.detect_negative), F(u.detect_positive), x > F(0.0)))',
  },
];

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

const geluShader = (name: string) => {
  const { kind, wgsl, math } = scalarFunction(name);
  return elementwiseShader(kind, () => `${mathFunctions(...math)}\nfn apply(x: T) -> R { return ${wgsl}; }`);
};
const GELU_SHADERS = { none: geluShader('Gelu'), tanh: geluShader('GeluTanh') };

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
