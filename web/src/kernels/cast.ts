// Cast, CastLike and BitCast.
import { type Context, type Kernel, KernelError, type Spec } from '../jsep/kernel';
import { DType } from '../schema';
import { storageOf, typeName } from '../jsep/elements';
import { ALL, computeType, elementwise, elementwiseShader, narrowType, wrapped } from '../wgsl';

interface CastSpec extends Spec {
  readonly bool: boolean;
  readonly wrap?: DType;
}

const CAST = elementwiseShader<CastSpec>('cast', ({ operands, result, bool, wrap }) => {
  const [from, to] = [computeType(operands[0].storage), computeType(result)];
  let value = 'R(x)';
  if (bool) value = 'U(x != T(0))';
  // Through i32, so that negative numbers wrap around as they do in C, and not to 0.
  else if (from === 'f32' && to === 'u32') value = 'select(U(x), U(I(x)), x < T(0))';
  return `fn apply(x: T) -> R { return ${wrapped(wrap, value)}; }`;
});

function cast(ctx: Context, to: DType): void {
  const x = ctx.input(0);
  if (to === x.dtype) return ctx.view(0, x, x.dims);
  storable(to);
  elementwise(ctx, CAST, { x }, ctx.output(0, x.dims, to), { spec: { bool: to === DType.bool_, wrap: narrowType(to) } });
}

function storable(dtype: DType): void {
  try {
    storageOf(dtype);
  } catch {
    throw new KernelError(`Cast to ${typeName(dtype)}: the GPU has no such type`, true);
  }
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

const BIT_CAST = elementwiseShader('bit_cast', () => 'fn apply(x: T) -> R { return bitcast<R>(x); }');

const bitCast: Kernel<DType> = {
  op: 'BitCast',
  types: [['float32', 'int32', 'uint32']],
  attributes: (given) => given.integer('to', 0),
  resolve(ctx, to) {
    const x = ctx.input(0);
    if (to === x.dtype) return ctx.view(0, x, x.dims);
    if (![DType.float32, DType.int32, DType.uint32].includes(to)) {
      throw new KernelError(`BitCast from ${typeName(x.dtype)} to ${typeName(to)}: on the GPU both must be of 32 bits`, true);
    }
    elementwise(ctx, BIT_CAST, { x }, ctx.output(0, x.dims, to));
  },
};

export default [castKernel, castLike, bitCast];
