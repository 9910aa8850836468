import { sizeOf } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { axesUpTo, formula, range } from './shared/calls';
import { softmaxLog } from './shared/softmax';
import { INDICES } from './shared/types';

/**
 * x: logarithms [batch, classes, …]; ignored labels have weight 0. Elements are found by comparing classes, as TFLite
 * gathers by constants only.
 */
function likelihood(f: Formula, [x, target, weights]: readonly MlOperand[], { attributes }: Call): MlOperand {
  const [batch, classes, ...space] = x.shape;
  const pixels = sizeOf(space);
  const named = f.reshape(target, [batch, 1, pixels]);
  const all = f.constant(range(classes), [1, classes, 1], named.dataType);
  const hit = f.of('equal', named, all);
  const zero = f.number(x, 0);
  const options = { axes: [1], keepDimensions: true };
  const picked = (of: MlOperand) => f.plain('reduceSum', f.of('where', hit, of, zero), options);
  const each = weights ? picked(f.reshape(weights, [1, classes, 1])) : f.plain('expand', f.number(x, 1), named.shape);
  const ignored = attributes.has('ignore_index') && f.of('equal', named, attributes.integer('ignore_index', 0));
  const weight = ignored ? f.of('where', ignored, zero, each) : each;
  const loss = f.of('neg', f.of('mul', picked(f.reshape(x, [batch, classes, pixels])), weight));
  const reduction = attributes.text('reduction', 'mean');
  if (reduction === 'none') return f.reshape(loss, target.shape);
  const sum = f.plain('reduceSum', loss);
  return reduction === 'sum' ? sum : f.of('div', sum, f.plain('reduceSum', weight));
}

const types = [FLOATS, INDICES, FLOATS];

export default [
  { op: 'NegativeLogLikelihoodLoss', types, requires: axesUpTo(8, 0), emit: formula(likelihood) },
  {
    op: 'SoftmaxCrossEntropyLoss',
    types,
    requires: axesUpTo(6, 0),
    emit: formula((f, [x, ...rest], call) => {
      const logs = softmaxLog(f, x, 1);
      return [likelihood(f, [logs, ...rest], call), logs].slice(0, call.wants.length);
    }),
  },
] satisfies MlOperator[];
