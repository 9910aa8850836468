// CumSum and CumProd: a thread walks along the axis.
import type { Kernel, Shader, Spec, StorageType } from '../../../../contract/kernel';
import type { DType } from '../../../../schema';
import {
  computeType,
  HOST,
  laneAliases,
  linearMain,
  linearWorkgroups,
  load,
  narrowType,
  normalizeAxis,
  NUMBERS,
  sizeOf,
  stored,
  wrapped,
} from '../../wgsl';
import { checkReads } from '../shared/reads';

interface CumulativeSpec extends Spec {
  readonly product: boolean;
  readonly exclusive: boolean;
  readonly type: StorageType;
  readonly wrap?: DType;
  /** A thread has one element, and sums up all before it. */
  readonly own?: boolean;
}

const CUMULATIVE: Shader<CumulativeSpec> = {
  name: 'cumulative',
  wgsl({ product, exclusive, type, wrap, own }) {
    const write = `y[at] = ${stored(type, 1, wrapped(wrap, 'sofar'))};`;
    // The first sum is its element: adding it to +0 would lose the sign of -0.
    const start = product ? '1' : !exclusive && computeType(type) === 'f32' ? 'bitcast<f32>(0x80000000u)' : '0';
    const take = `sofar ${product ? '*=' : '+='} ${load(type, 1, 'x[at]')};`;
    if (own)
      return `${laneAliases(1)}
${linearMain(`  let place = i / u.inner % u.steps;
  var at = i - place * u.inner + u.first * u.inner;
  let before = select(place, u.steps - 1u - place, u.first > 0u)${exclusive ? '' : ' + 1u'};
  var sofar: ${computeType(type)} = ${start};
  for (var k = 0u; k < before; k++) { ${take} at += u.stride; }
  y[i] = ${stored(type, 1, wrapped(wrap, 'sofar'))};`)}`;
    return `${laneAliases(1)}
${linearMain(`  var at = i / u.inner * u.steps * u.inner + i % u.inner + u.first * u.inner;
  var sofar: ${computeType(type)} = ${start};
  for (var k = 0u; k < u.steps; k++) {
    ${exclusive ? `let value = x[at]; ${write} ${take.replace('x[at]', 'value')}` : `${take} ${write}`}
    at += u.stride;
  }`)}`;
  },
};

interface Cumulative {
  readonly exclusive: boolean;
  readonly reverse: boolean;
}

function cumulative(op: string, product: boolean): Kernel<Cumulative> {
  return {
    op,
    types: [NUMBERS, HOST],
    attributes: (given) => ({
      exclusive: given.integer('exclusive', 0) !== 0,
      reverse: given.integer('reverse', 0) !== 0,
    }),
    resolve(ctx, { exclusive, reverse }) {
      const x = ctx.input(0);
      const axis = normalizeAxis(ctx.data(1)?.[0] ?? 0, x.dims.length);
      const y = ctx.output(0, x.dims);
      if (y.size === 0) return;
      const steps = x.dims[axis];
      const inner = sizeOf(x.dims.slice(axis + 1));
      const own = ctx.device.ownElement;
      const count = own ? y.size : y.size / steps;
      checkReads(ctx, op, count, steps);
      ctx.dispatch<CumulativeSpec>({
        shader: CUMULATIVE,
        spec: { product, exclusive, type: x.storage, wrap: narrowType(x.dtype), own },
        inputs: { x },
        outputs: { y },
        // Backwards the stride wraps around in u32, as intended.
        uniforms: { count, steps, inner, first: reverse ? steps - 1 : 0, stride: reverse ? -inner : inner },
        workgroups: linearWorkgroups(count, ctx.device),
      });
    },
  };
}

export default [cumulative('CumSum', false), cumulative('CumProd', true)];
