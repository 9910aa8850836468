// DFT along one axis, by the definition: one thread for each frequency, which reads the whole signal.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { laneAliases, load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { mathFunctions } from '../../wgsl/math';
import { normalizeAxis, sizeOf } from '../../../../contract/shape';

interface DftSpec extends Spec {
  readonly complex: boolean;
  readonly inverse: boolean;
  /** True if only the real part is wanted (inverse of a one-sided spectrum). */
  readonly toReal: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<DftSpec> = {
  name: 'dft__any',
  wgsl({ complex, inverse, toReal, storage }) {
    const part = (index: string, offset: number) =>
      load(storage, 1, `x[(${index}) * ${complex ? 2 : 1}u + ${offset}u]`);
    // The other half of a one-sided spectrum is its mirror image, conjugated.
    const read = toReal
      ? `let mirrored = n > u.length / 2u;
    let at = base + select(n, u.length - n, mirrored) * u.inner;
    let real = select(0.0, ${part('at', 0)}, select(n, u.length - n, mirrored) < u.given);
    let imaginary = select(0.0, ${part('at', 1)}, select(n, u.length - n, mirrored) < u.given)
      * select(1.0, -1.0, mirrored);`
      : `let at = base + n * u.inner;
    let real = ${part('at', 0)};
    let imaginary = ${complex ? part('at', 1) : '0.0'};`;
    return `${laneAliases(1)}
${mathFunctions('sin_', 'cos_')}
${linearMain(`  let inner = i % u.inner;
  let k = i / u.inner % u.frequencies;
  let base = i / u.inner / u.frequencies * u.given * u.inner + inner;
  var sum = vec2<f32>(0.0);
  let steps = ${toReal ? 'u.length' : 'min(u.given, u.length)'};
  for (var n = 0u; n < steps; n++) {
    ${read}
    // The remainder first: large angles lose digits. Then whole quarters: the sine of a rounded pi is not 0.
    let turn = k * n % u.length * 4u;
    let angle = 1.5707963267948966 * f32(turn % u.length) / f32(u.length);
    let quarter = turn / u.length;
    let even = vec2<f32>(cos_(angle), sin_(angle));
    let half = select(even, vec2<f32>(-even.y, even.x), (quarter & 1u) == 1u);
    let c = select(half.x, -half.x, quarter >= 2u);
    let s = select(half.y, -half.y, quarter ${inverse ? '>= 2u' : '< 2u'});
    sum += vec2<f32>(real * c - imaginary * s, real * s + imaginary * c);
  }
  ${inverse ? 'sum = sum / f32(u.length);' : ''}
  ${
    toReal
      ? `y[i] = ${stored(storage, 1, 'sum.x')};`
      : `y[2u * i] = ${stored(storage, 1, 'sum.x')}; y[2u * i + 1u] = ${stored(storage, 1, 'sum.y')};`
  }`)}`;
  },
};

export interface Transform {
  /** Axes of x and y: the last one has real and imaginary parts. */
  readonly axis: number;
  /** Length of the signal; x may have fewer or more elements. */
  readonly length: number;
  readonly inverse?: boolean;
  readonly toReal?: boolean;
}

/** y = the transform of x; y's shape has the number of frequencies. */
export function transform(
  ctx: Context,
  x: Tensor,
  y: Tensor,
  { axis, length, inverse = false, toReal = false }: Transform,
): void {
  const last = x.dims.length - 1;
  const count = y.size / y.dims[last];
  ctx.dispatch({
    shader: SHADER,
    spec: { complex: x.dims[last] === 2, inverse, toReal, storage: x.storage },
    inputs: { x },
    outputs: { y },
    uniforms: {
      count,
      inner: sizeOf(x.dims.slice(axis + 1, -1)),
      given: x.dims[axis],
      length,
      frequencies: y.dims[axis],
    },
    workgroups: linearWorkgroups(count, ctx.device),
    iterations: toReal ? length : Math.min(length, x.dims[axis]),
  });
}

const dft: Kernel<{ inverse: boolean; oneSided: boolean; axis: number }> = {
  op: 'DFT',
  types: [['float32', 'float16'], [], []],
  attributes: (a) => ({
    inverse: a.integer('inverse', 0) !== 0,
    oneSided: a.integer('onesided', 0) !== 0,
    axis: a.integer('axis', -2),
  }),
  resolve(ctx, { inverse, oneSided, axis: attribute }) {
    const x = ctx.input(0);
    const rank = x.dims.length;
    const axis = normalizeAxis(ctx.data(2)?.[0] ?? attribute, rank);
    const complex = x.dims[rank - 1] === 2;
    if (axis === rank - 1 || (x.dims[rank - 1] !== 1 && !complex))
      throw new KernelError(`DFT of [${x.dims}] along axis ${axis}`);
    const given = x.dims[axis];
    const toReal = inverse && oneSided;
    const length = ctx.data(1)?.[0] ?? (toReal ? 2 * (given - 1) : given);
    const frequencies = oneSided && !inverse ? Math.floor(length / 2) + 1 : length;
    const dims = [...x.dims.slice(0, axis), frequencies, ...x.dims.slice(axis + 1, -1), toReal ? 1 : 2];
    transform(ctx, x, ctx.output(0, dims), { axis, length, inverse, toReal });
  },
};

export default [dft];
