// Cast, CastLike and BitCast.
import { type Context, type Kernel, KernelError, type Spec } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { dtypeOf, hasGpuForm, typeName } from '../../../../contract/elements';
import { ALL, computeType, elementwise, elementwiseShader, narrowType, wrapped } from '../../wgsl';

interface CastSpec extends Spec {
  readonly bool: boolean;
  readonly wrap?: DType;
}

const CAST = elementwiseShader<CastSpec>('cast', ({ operands, result, bool, wrap }) => {
  const [from, to] = [computeType(operands[0].storage), computeType(result)];
  const lowBits = `select(U(0), U(x - floor(x * T(${1 / 2 ** 32})) * T(${2 ** 32})), ${below(63)})`;
  let value = 'R(x)';
  // Tests bits: a NaN is not zero, but WGSL's comparisons with it are all false.
  if (bool) value = from === 'f32' ? 'U((bitcast<U>(x) & U(0x7fffffffu)) != U(0))' : 'U(x != T(0))';
  // The low bits of a 64-bit integer, as natively; numbers beyond 64 bits, and NaN, become 0.
  else if (from === 'f32' && to === 'u32' && wrap === undefined) value = `select(${lowBits}, U(I(x)), ${below(31)})`;
  // NaN and numbers beyond 32 bits become the smallest integer, as natively; WGSL saturates.
  else if (from === 'f32' && to !== 'f32') value = `R(select(I(-2147483647 - 1), I(x), ${below(31)}))`;
  return `fn apply(x: T) -> R { return ${wrapped(wrap, value)}; }`;
});

/** WGSL of |x| < 2^power, by bits: false for NaN. */
const below = (power: number) => `(bitcast<U>(x) & U(0x7fffffffu)) < U(${(127 + power) * 2 ** 23}u)`;

function cast(ctx: Context, to: DType): void {
  const x = ctx.input(0);
  if (to === x.dtype) return ctx.view(0, x, x.dims);
  if (!hasGpuForm(to)) throw new KernelError(`Cast to ${typeName(to)}: the GPU has no such type`, true);
  const y = ctx.output(0, x.dims, to);
  elementwise(ctx, CAST, { x }, y, { spec: { bool: to === DType.bool_, wrap: narrowType(to) } });
}

const castKernel: Kernel<DType> = {
  op: 'Cast',
  types: [ALL],
  attributes: (given) => given.integer('to', 0),
  resolve: cast,
};

const castLike: Kernel = {
  op: 'CastLike',
  types: [ALL, []],
  resolve: (ctx) => cast(ctx, ctx.input(1).dtype),
};

const BIT_CAST = elementwiseShader<{ readonly wrap?: DType }>(
  'bit_cast',
  ({ wrap }) => `fn apply(x: T) -> R { return ${wrapped(wrap, 'bitcast<R>(x)')}; }`,
);

/** Types between which bits may be reinterpreted: those of equal width, except two words wide. */
const WIDTHS = [
  ['float32', 'int32', 'uint32'],
  ['int16', 'uint16'],
  ['int8', 'uint8', 'bool'],
] as const;

const bitCast: Kernel<DType> = {
  op: 'BitCast',
  types: [WIDTHS.flat()],
  requires: WIDTHS.map((names) => ({
    attribute: 'to',
    values: names.map(dtypeOf),
    of: names,
    otherwise: `BitCast of ${names.join(', ')} to another width`,
  })),
  attributes: (given) => given.integer('to', 0),
  resolve(ctx, to) {
    const x = ctx.input(0);
    if (to === x.dtype) return ctx.view(0, x, x.dims);
    elementwise(ctx, BIT_CAST, { x }, ctx.output(0, x.dims, to), { spec: { wrap: narrowType(to) } });
  },
};

export default [castKernel, castLike, bitCast];
