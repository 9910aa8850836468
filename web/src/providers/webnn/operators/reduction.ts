// Reductions, and operators along an axis.
import type { DTypeName } from '../../../contract/kernel';
import { normalizeAxes, normalizeAxis } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { axesUpTo, axisOf, formula, range } from './shared/calls';
import { softmax, softmaxLog } from './shared/softmax';
import { NUMBERS } from './shared/types';

type Step = (f: Formula, x: MlOperand) => MlOperand;
interface Row {
  readonly by: string;
  readonly types: readonly DTypeName[];
  readonly before?: Step;
  readonly after?: Step;
}
const square: Step = (f, x) => f.of('mul', x, x);
const root: Step = (f, x) => f.of('sqrt', x);
const size: Step = (f, x) => (x.dataType === 'int64' ? f.of('max', x, f.of('neg', x)) : f.of('abs', x));
const log: Step = (f, x) => f.of('log', x);

const REDUCTIONS: { readonly [op: string]: Row } = {
  ReduceL1: { by: 'reduceSum', types: NUMBERS, before: size },
  ReduceL2: { by: 'reduceSum', types: FLOATS, before: square, after: root },
  ReduceLogSum: { by: 'reduceSum', types: FLOATS, after: log },
  ReduceLogSumExp: { by: 'reduceLogSumExp', types: FLOATS },
  ReduceMax: { by: 'reduceMax', types: [...NUMBERS, 'bool'] },
  ReduceMean: { by: 'reduceMean', types: FLOATS },
  ReduceMin: { by: 'reduceMin', types: [...NUMBERS, 'bool'] },
  ReduceProd: { by: 'reduceProduct', types: NUMBERS },
  ReduceSum: { by: 'reduceSum', types: NUMBERS },
  ReduceSumSquare: { by: 'reduceSum', types: NUMBERS, before: square },
};

/** Without any: all axes, or none, with nothing to reduce. */
function axesOf({ attributes, inputs, data }: Call): readonly number[] {
  const rank = inputs[0]!.dims.length;
  const given = data(1) ?? [];
  if (given.length > 0) return normalizeAxes(given, rank);
  return attributes.integer('noop_with_empty_axes', 0) ? [] : inputs[0]!.dims.map((_, i) => i);
}

/** The largest element is subtracted from the exponents, if it is finite. */
function logSumExp(f: Formula, x: MlOperand, axes: readonly number[]): MlOperand {
  const options = { axes: [...axes], keepDimensions: true };
  const bound = x.dataType === 'float16' ? 65504 : 3.4028234e38;
  const most = f.of('min', f.of('max', f.plain('reduceMax', x, options), -bound), bound);
  return f.of('add', f.of('log', f.plain('reduceSum', f.of('exp', f.of('sub', x, most)), options)), most);
}

const reduce =
  ({ by, before, after }: Row): MlOperator['emit'] =>
  (call) => {
    const axes = axesOf(call);
    const options = { axes, keepDimensions: true };
    const { dims } = call.inputs[0]!;
    const kept = call.attributes.integer('keepdims', 1) !== 0;
    const shape = kept ? dims.map((d, i) => (axes.includes(i) ? 1 : d)) : dims.filter((_, i) => !axes.includes(i));
    return formula((f, [x]) => {
      const from = before ? before(f, f.wide(x)) : f.wide(x);
      const reduced =
        by === 'reduceLogSumExp' ? logSumExp(f, from, axes) : axes.length > 0 ? f.plain(by, from, options) : from;
      return f.cast(f.reshape(after ? after(f, reduced) : reduced, shape), x.dataType);
    })(call);
  };

/** Without its keepDimensions, which browsers ignore. */
const extreme = (f: Formula, name: string, x: MlOperand, axis: number) =>
  f.plain(name, x, axis, { outputDataType: 'int64' });

export default [
  ...Object.entries(REDUCTIONS).map(([op, row]) => ({
    op,
    types: [row.types],
    requires: axesUpTo(row.by === 'reduceLogSumExp' ? 5 : 6, 0),
    emit: reduce(row),
  })),
  ...['ArgMax', 'ArgMin'].map((op) => ({
    op,
    types: [['float32', 'float16', 'int32', 'int8', 'uint8'] as const],
    requires: axesUpTo(6, 0),
    emit: formula((f, [x], call) => {
      const axis = axisOf(call, 0);
      const shape = x.shape.flatMap((d, i) => (i !== axis ? [d] : call.attributes.integer('keepdims', 1) ? [1] : []));
      const first = (of: MlOperand) => f.reshape(extreme(f, `a${op.slice(1)}`, of, axis), shape);
      if (!call.attributes.integer('select_last_index', 0)) return first(x);
      const places = first(f.plain('reverse', x, { axes: [axis] }));
      return f.of('sub', f.number(places, x.shape[axis] - 1), places);
    }),
  })),
  {
    op: 'CumSum',
    types: [['float32', 'float16', 'int32', 'int64']],
    emit: (call) => {
      const [axis] = call.data(1)!;
      const options = {
        exclusive: call.attributes.integer('exclusive', 0) === 1,
        reversed: call.attributes.integer('reverse', 0) === 1,
      };
      const along = normalizeAxis(axis, call.inputs[0]!.dims.length);
      return formula((f, [x]) => f.plain('cumulativeSum', x, along, options))(call);
    },
  },
  {
    op: 'Softmax',
    types: [FLOATS],
    requires: axesUpTo(6, 0),
    emit: formula((f, [x], call) => softmax(f, x, axisOf(call, -1))),
  },
  {
    op: 'LogSoftmax',
    types: [FLOATS],
    requires: axesUpTo(6, 0),
    emit: formula((f, [x], call) => softmaxLog(f, x, axisOf(call, -1))),
  },
  {
    op: 'Hardmax',
    types: [FLOATS],
    requires: axesUpTo(4, 0),
    emit: formula((f, [x], call) => {
      const axis = axisOf(call, -1);
      const places = x.shape.map((d, i) => (i === axis ? d : 1));
      const counted = f.constant(range(x.shape[axis]), places, 'float32');
      const most = f.cast(extreme(f, 'argMax', x, axis), 'float32');
      return f.cast(
        f.of(
          'equal',
          counted,
          f.reshape(
            most,
            x.shape.map((d, i) => (i === axis ? 1 : d)),
          ),
        ),
        x.dataType,
      );
    }),
  },
] satisfies MlOperator[];
