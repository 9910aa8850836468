// Operators of com.microsoft on quantized tensors. Each tensor is followed by its scale and its zero point.
import { MICROSOFT_DOMAIN, type Requirement } from '../../../contract/kernel';
import type { Call, Emit, MlOperator } from '../operator';
import { axesUpTo, axisOf, formula } from './shared/calls';
import type { Layout } from './shared/images';
import { inSteps, productFloats, sameSteps, stepsOf } from './shared/integers';
import { globalPool, integerMean, pool } from './pooling';
import { BYTES } from './shared/types';
import { Dialect } from '../../../schema/dialect';

const STEPS: MlOperator['types'] = [['float32'], BYTES];

const onTensors = (op: string, count: number, requires: readonly Requirement[], emit: MlOperator['emit']) =>
  ({
    op,
    domain: MICROSOFT_DOMAIN,
    types: [...Array.from({ length: count }, () => [BYTES, ...STEPS]).flat(), ...STEPS],
    requires,
    features: ['signed'],
    emit,
  }) satisfies MlOperator;

const binary = (op: string, name: string) =>
  onTensors(
    op,
    2,
    axesUpTo(5, 0, 3),
    formula((f, [a, aScale, aZero, b, bScale, bZero, yScale, yZero]) => {
      const left = f.dequantized(a, stepsOf(f, a, aScale, aZero));
      const right = f.dequantized(b, stepsOf(f, b, bScale, bZero));
      return f.quantized(f.plain(name, left, right), stepsOf(f, a, yScale, yZero));
    }),
  );

/**
 * `rescales`: true if the browser computes correctly in integers between different scales; otherwise it must not try.
 */
const pooled = (op: string, of: (layout: Layout) => MlOperator['emit'], rescales: boolean) =>
  onTensors(op, 1, axesUpTo(5, 0), (call): Emit => {
    const emit = of(call.attributes.integer('channels_last', 0) === 1 ? 'nhwc' : 'nchw')(call);
    return (f, [x, xScale, xZero, yScale, yZero]) => {
      const [from, to] = [stepsOf(f, x, xScale, xZero), stepsOf(f, x, yScale, yZero)];
      const y = [emit(f, [f.dequantized(x, from)])].flat()[0];
      return f.quantized(rescales || sameSteps(f, from, to) ? y : f.apart(y), to);
    };
  });

/** Inputs are the result's scale and zero point, then tensors. */
function concat(call: Call): Emit {
  const at = axisOf({ ...call, inputs: call.inputs.slice(FIRST) }, 1);
  return (f, [yScale, yZero, ...parts]) => {
    const to = stepsOf(f, parts[0], yScale, yZero);
    const floats = parts.flatMap((x, i) => {
      if (i % EACH) return [];
      return f.dequantized(inSteps(f, x, stepsOf(f, x, parts[i + 1], parts[i + 2]), to), to);
    });
    return f.quantized(f.plain('concat', floats, at), to);
  };
}

const FIRST = 2;
const EACH = 3;

export default [
  binary('QLinearAdd', 'add'),
  binary('QLinearMul', 'mul'),
  pooled('QLinearAveragePool', (layout) => pool(integerMean, layout), false),
  pooled('QLinearGlobalAveragePool', (layout) => globalPool('GlobalAveragePool', layout), true),
  {
    op: 'QLinearConcat',
    domain: MICROSOFT_DOMAIN,
    types: [...STEPS, [...BYTES, 'float32']],
    requires: axesUpTo(5, FIRST),
    features: ['signed'],
    emit: concat,
  },
  {
    op: 'QGemm',
    domain: MICROSOFT_DOMAIN,
    types: [BYTES, ...STEPS, BYTES, ...STEPS, ['int32'], ...STEPS],
    features: ['signed'],
    emit: formula((f, [a, aScale, aZero, b, bScale, bZero, c, yScale, yZero], { attributes }) => {
      const packed = attributes.integer(Dialect.PACKED_N, 0) > 0;
      const floats = productFloats(f, [a, aScale, aZero], [b, bScale, bZero], packed, c, attributes.number('alpha', 1));
      return yScale ? f.quantized(floats, stepsOf(f, a, yScale, yZero)) : floats;
    }),
  },
] satisfies MlOperator[];
