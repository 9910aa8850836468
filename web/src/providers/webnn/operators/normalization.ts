// Normalizations.
import { MICROSOFT_DOMAIN, NHWC_DOMAIN } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { axesUpTo, axisOf, formula } from './shared/calls';
import type { Layout } from './shared/images';

/** x * scale + shift, which broadcast to x. */
function scaled(f: Formula, x: MlOperand, scale?: MlOperand, shift?: MlOperand): MlOperand {
  const product = scale ? f.of('mul', x, f.cast(scale, x.dataType)) : x;
  return shift ? f.of('add', product, f.cast(shift, x.dataType)) : product;
}

interface Norm {
  readonly x: MlOperand;
  readonly axes: readonly number[];
  readonly centered: boolean;
  readonly epsilon: number;
  readonly scale?: MlOperand;
  readonly shift?: MlOperand;
}

/** The result, the mean and the inverse deviation, in float32: the squares of halves exceed halves. */
function normalized(f: Formula, { x: given, axes: over, centered, epsilon, scale, shift }: Norm, statistics: boolean) {
  const x = f.cast(given, 'float32');
  const axes = [...over];
  if (centered && !statistics) {
    const whole = [scale, shift].every((one) => !one || `${one.shape}` === `${axes.map((axis) => x.shape[axis])}`);
    const factors = {
      ...(whole && scale && { scale: f.cast(scale, 'float32') }),
      ...(whole && shift && { bias: f.cast(shift, 'float32') }),
    };
    const plain = f.plain('layerNormalization', x, { axes, epsilon, ...factors });
    const y = f.cast(whole ? plain : scaled(f, plain, scale, shift), given.dataType);
    return { y, mean: y, inverse: y };
  }
  const options = { axes, keepDimensions: true };
  const mean = f.plain('reduceMean', x, options);
  const from = centered ? f.of('sub', x, mean) : x;
  const squares = f.plain('reduceMean', f.of('mul', from, from), options);
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
    const norm = {
      x,
      scale,
      shift: centered ? shift : undefined,
      centered,
      epsilon,
      axes: places(x).slice(axisOf(call, -1)),
    };
    const { y, mean, inverse } = normalized(f, norm, statistics);
    return (centered ? [y, mean, inverse] : [y, inverse]).slice(0, call.wants.length);
  }),
});

/** The rows of x + skip + bias. */
const skipping = (op: string, centered: boolean): MlOperator => ({
  op,
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  requires: axesUpTo(5, 0),
  emit: formula((f, [x, skip, scale, ...rest], call) => {
    const [shift, bias] = centered ? rest : [undefined, rest[0]];
    const sum = scaled(f, f.of('add', x, skip), undefined, bias);
    const epsilon = call.attributes.number('epsilon', 1e-12);
    const norm = { x: sum, scale, shift, centered, epsilon, axes: [sum.shape.length - 1] };
    const { y, mean, inverse } = normalized(
      f,
      norm,
      call.wants.slice(1, 3).some((wanted) => wanted),
    );
    return [y, mean, inverse, sum].slice(0, call.wants.length);
  }),
});

/** Each group of an image's channels separately; scale and shift are per channel. */
const grouped =
  (layout: Layout, groupsOf: (call: Call) => number): MlOperator['emit'] =>
  (call) => {
    const groups = groupsOf(call);
    const epsilon = call.attributes.number('epsilon', 1e-5);
    return formula((f, [x, scale, shift]) => {
      const last = layout === 'nhwc';
      const images = x.shape[0];
      const channels = scale.shape[0];
      const pixels = sizeOf(x.shape) / images / channels;
      const shape = last ? [images, pixels, groups, channels / groups] : [images, groups, (channels / groups) * pixels];
      const axes = last ? [1, 3] : [2];
      const { y } = normalized(f, { x: f.reshape(x, shape), axes, centered: true, epsilon }, false);
      const [by, plus] = [scale, shift].map((one) =>
        f.reshape(one, [channels, ...(last ? [] : x.shape.slice(2).map(() => 1))]),
      );
      return scaled(f, f.reshape(y, x.shape), by, plus);
    })(call);
  };

/** Means of squares of the neighboring channels are those of a pool. */
const across = (layout: Layout) =>
  formula((f, [x], { attributes }) => {
    const size = attributes.integer('size', 1);
    const last = layout === 'nhwc';
    const [images, channels] = [x.shape[0], x.shape[last ? x.shape.length - 1 : 1]];
    const pixels = sizeOf(x.shape) / images / channels;
    const shape = last ? [1, images * pixels, channels, 1] : [images, channels, 1, pixels];
    const before = (size - 1) >> 1;
    const around = (count: number) => [0, last ? 0 : count, last ? count : 0, 0];
    const squares = f.reshape(f.of('mul', x, x), shape);
    const padded = size > 1 ? f.plain('pad', squares, around(before), around(size - 1 - before)) : squares;
    const window = { layout: 'nhwc', windowDimensions: last ? [1, size] : [size, 1] };
    const means = f.reshape(f.plain('averagePool2d', padded, window), x.shape);
    const base = f.of('add', f.of('mul', means, attributes.number('alpha', 1e-4)), attributes.number('bias', 1));
    return f.of('div', x, f.of('pow', base, attributes.number('beta', 0.75)));
  });

const places = ({ shape }: MlOperand) => shape.map((_, i) => i);

/** Operators that depend on the place of the channels, in ONNX's order or with channels last. */
const ofImages = (layout: Layout, domain?: string): MlOperator[] => [
  {
    op: 'BatchNormalization',
    domain,
    types: [FLOATS],
    requires: [
      { rank: { input: 0, min: 2, max: 5 }, otherwise: 'these axes' },
      { attribute: 'training_mode', values: [0], otherwise: 'training' },
    ],
    emit: formula((f, [x, ...given], { attributes }) => {
      const [scale, bias, mean, variance] = given.map((one) => f.cast(one, x.dataType));
      const options = { axis: layout === 'nhwc' ? x.shape.length - 1 : 1, epsilon: attributes.number('epsilon', 1e-5) };
      return f.plain('batchNormalization', x, mean, variance, { scale, bias, ...options });
    }),
  },
  {
    op: 'InstanceNormalization',
    domain,
    types: [FLOATS],
    requires: axesUpTo(5, 0),
    emit: grouped(layout, ({ inputs }) => inputs[1]!.dims[0]),
  },
  {
    op: 'GroupNormalization',
    domain,
    types: [FLOATS],
    requires: axesUpTo(5, 0),
    emit: grouped(layout, ({ attributes }) => attributes.integer('num_groups', 1)),
  },
  {
    op: 'LRN',
    domain,
    types: [FLOATS],
    requires: [{ rank: { input: 0, min: 2, max: 4 }, otherwise: 'more than 4 axes' }],
    emit: across(layout),
  },
];

export default [
  rows('LayerNormalization', true),
  rows('RMSNormalization', false),
  rows('SimplifiedLayerNormalization', false),
  rows('SimplifiedLayerNormalization', false, MICROSOFT_DOMAIN),
  skipping('SkipLayerNormalization', true),
  skipping('SkipSimplifiedLayerNormalization', false),
  ...ofImages('nchw'),
  ...ofImages('nhwc', NHWC_DOMAIN),
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
