// Normalizations.
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { axesUpTo, axisOf, type Formula, formula } from './shared/formula';

const MICROSOFT = 'com.microsoft';

/** x * scale + shift, of what broadcasts to x. */
function scaled(f: Formula, x: MlOperand, scale?: MlOperand, shift?: MlOperand): MlOperand {
  const product = scale ? f.of('mul', x, f.cast(scale, x.dataType)) : x;
  return shift ? f.of('add', product, f.cast(shift, x.dataType)) : product;
}

interface Norm {
  readonly x: MlOperand;
  readonly axis: number;
  readonly centered: boolean;
  readonly epsilon: number;
  readonly scale?: MlOperand;
  readonly shift?: MlOperand;
}

/** The result, the mean and the inverse deviation, in float32: halves' squares are no halves. */
function normalized(f: Formula, { x: given, axis, centered, epsilon, scale, shift }: Norm, statistics: boolean) {
  const x = f.cast(given, 'float32');
  const axes = x.shape.map((_, i) => i).slice(axis);
  if (centered && !statistics) {
    const whole = [scale, shift].every((one) => !one || `${one.shape}` === `${x.shape.slice(axis)}`);
    const factors = {
      ...(whole && scale && { scale: f.cast(scale, 'float32') }),
      ...(whole && shift && { bias: f.cast(shift, 'float32') }),
    };
    const plain = f.plain('layerNormalization', x, { axes, epsilon, ...factors });
    const y = f.cast(whole ? plain : scaled(f, plain, scale, shift), given.dataType);
    return { y, mean: y, inverse: y };
  }
  const over = { axes, keepDimensions: true };
  const mean = f.plain('reduceMean', x, over);
  const from = centered ? f.of('sub', x, mean) : x;
  const squares = f.plain('reduceMean', f.of('mul', from, from), over);
  const inverse = f.of('reciprocal', f.of('sqrt', f.of('add', squares, epsilon)));
  return { y: f.cast(scaled(f, f.of('mul', from, inverse), scale, shift), given.dataType), mean, inverse };
}

const rows = (op: string, centered: boolean, domain?: string): MlOperator => ({
  op,
  domain,
  types: [FLOATS],
  requires: axesUpTo(5, 0),
  emit: formula((f, [x, scale, shift], call) => {
    const epsilon = call.attributes.number('epsilon', 1e-5);
    const statistics = call.wants.slice(1).some((wanted) => wanted);
    const norm = { x, scale, shift: centered ? shift : undefined, centered, epsilon, axis: axisOf(call, -1) };
    const { y, mean, inverse } = normalized(f, norm, statistics);
    return (centered ? [y, mean, inverse] : [y, inverse]).slice(0, call.wants.length);
  }),
});

/** The rows of x + skip + bias. */
const skipping = (op: string, centered: boolean): MlOperator => ({
  op,
  domain: MICROSOFT,
  types: [FLOATS],
  requires: axesUpTo(5, 0),
  emit: formula((f, [x, skip, scale, ...rest], call) => {
    const [shift, bias] = centered ? rest : [undefined, rest[0]];
    const sum = scaled(f, f.of('add', x, skip), undefined, bias);
    const epsilon = call.attributes.number('epsilon', 1e-12);
    const norm = { x: sum, scale, shift, centered, epsilon, axis: sum.shape.length - 1 };
    const { y, mean, inverse } = normalized(
      f,
      norm,
      call.wants.slice(1, 3).some((wanted) => wanted),
    );
    return [y, mean, inverse, sum].slice(0, call.wants.length);
  }),
});

/** Each group of channels of an image by its own; scale and shift are channels'. */
function grouped(f: Formula, [x, scale, shift]: readonly MlOperand[], groups: number, epsilon: number): MlOperand {
  const [images, channels, ...space] = x.shape;
  const size = (channels / groups) * space.reduce((product, d) => product * d, 1);
  const flat = f.reshape(x, [images, groups, size]);
  const { y } = normalized(f, { x: flat, axis: 2, centered: true, epsilon }, false);
  const [by, plus] = [scale, shift].map((one) => f.reshape(one, [channels, ...space.map(() => 1)]));
  return scaled(f, f.reshape(y, x.shape), by, plus);
}

function across(f: Formula, x: MlOperand, { attributes }: Call): MlOperand {
  const size = attributes.integer('size', 1);
  const [images, channels, ...space] = x.shape;
  const squares = f.reshape(f.of('mul', x, x), [images, 1, channels, space.reduce((product, d) => product * d, 1)]);
  const before = (size - 1) >> 1;
  const padded = size > 1 ? f.plain('pad', squares, [0, 0, before, 0], [0, 0, size - 1 - before, 0]) : squares;
  const means = f.reshape(f.plain('averagePool2d', padded, { windowDimensions: [size, 1] }), x.shape);
  const base = f.of('add', f.of('mul', means, attributes.number('alpha', 1e-4)), attributes.number('bias', 1));
  return f.of('div', x, f.of('pow', base, attributes.number('beta', 0.75)));
}

export default [
  rows('LayerNormalization', true),
  rows('RMSNormalization', false),
  rows('SimplifiedLayerNormalization', false),
  rows('SimplifiedLayerNormalization', false, MICROSOFT),
  skipping('SkipLayerNormalization', true),
  skipping('SkipSimplifiedLayerNormalization', false),
  {
    op: 'BatchNormalization',
    types: [FLOATS],
    requires: [
      { rank: { input: 0, min: 2, max: 5 }, otherwise: 'these axes' },
      { attribute: 'training_mode', values: [0], otherwise: 'training' },
    ],
    emit: formula((f, [x, ...given], { attributes }) => {
      const [scale, bias, mean, variance] = given.map((one) => f.cast(one, x.dataType));
      const epsilon = attributes.number('epsilon', 1e-5);
      return f.plain('batchNormalization', x, mean, variance, { scale, bias, axis: 1, epsilon });
    }),
  },
  {
    op: 'InstanceNormalization',
    types: [FLOATS],
    requires: axesUpTo(5, 0),
    emit: formula((f, x, { attributes }) => grouped(f, x, x[0].shape[1], attributes.number('epsilon', 1e-5))),
  },
  {
    op: 'GroupNormalization',
    types: [FLOATS],
    requires: axesUpTo(5, 0),
    emit: formula((f, x, { attributes }) =>
      grouped(f, x, attributes.integer('num_groups', 1), attributes.number('epsilon', 1e-5)),
    ),
  },
  {
    op: 'LRN',
    types: [FLOATS],
    requires: [{ rank: { input: 0, min: 2, max: 4 }, otherwise: 'more than 4 axes' }],
    emit: formula((f, [x], call) => across(f, x, call)),
  },
  {
    op: 'LpNormalization',
    types: [FLOATS],
    requires: axesUpTo(5, 0),
    emit: formula((f, [x], call) => {
      const by = call.attributes.integer('p', 2) === 1 ? 'reduceL1' : 'reduceL2';
      const norm = f.plain(by, x, { axes: [axisOf(call, -1)], keepDimensions: true });
      return f.of('div', x, f.of('max', norm, x.dataType === 'float16' ? 2 ** -24 : 2 ** -126));
    }),
  },
] satisfies MlOperator[];
