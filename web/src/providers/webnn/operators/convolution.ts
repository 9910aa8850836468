// Convolutions over one and two axes.
import { NHWC_DOMAIN } from '../../../contract/kernel';
import { sizeOf } from '../../../contract/shape';
import { readWindow, slide, slideTransposed } from '../../../contract/window';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import {
  asBefore,
  endsEarly,
  firstSpatial,
  inTwo,
  type Layout,
  overTwo,
  padImage,
  paddingOf,
  spatialOf,
} from './shared/images';
import { biasFloats, stepsOf, weightFloats } from './shared/integers';
import { BYTES } from './shared/types';
import { Dialect } from '../../../schema/dialect';

/** For weights in an order of layout/packing.py: the place of their first spatial axis. Others have ONNX's. */
const KERNEL_AT: { readonly [layout: string]: number } = { ohwi: 1, ihwo: 1 };

function weightsOf({ attributes, inputs }: Call, plain: string) {
  const filterLayout = attributes.text(Dialect.WEIGHT_LAYOUT, plain).toLowerCase();
  const at = KERNEL_AT[filterLayout] ?? 2;
  return { filterLayout, at, kernel: inputs[1]!.dims.slice(at, at + inputs[1]!.dims.length - 2) };
}

const convolution =
  (layout: Layout) =>
  (call: Call): Emit => {
    const spatial = spatialOf(call.inputs[0]!.dims, layout);
    const { filterLayout, at, kernel } = weightsOf(call, 'oihw');
    const geometry = overTwo(slide(readWindow(call.attributes), spatial, kernel));
    const { strides, dilations, begins, ends } = geometry;
    const groups = call.attributes.integer('group', 1);
    const apart = endsEarly(geometry);
    const padding = apart ? [0, 0, 0, 0] : paddingOf(begins, ends);
    const options = { strides, dilations, padding, groups, inputLayout: layout, filterLayout };
    return (f, [x, w, bias]) => {
      const [image, filter] = [inTwo(f, x, firstSpatial(layout)), inTwo(f, w, at)];
      const whole = apart ? padImage(f, image, layout, begins, ends) : image;
      const y = f.plain('conv2d', whole, filter, { ...options, ...(bias && { bias }) });
      return asBefore(f, y, spatial.length, layout);
    };
  };

/** Inputs are x, w and y, each with its scale and zero point, and a bias. */
const quantized =
  (layout: Layout) =>
  (call: Call): Emit => {
    const emit = convolution(layout)({ ...call, inputs: [call.inputs[0], call.inputs[3]] });
    const axis = call.attributes.text(Dialect.WEIGHT_LAYOUT, '') === Dialect.IHWO ? 3 : 0;
    return (f, [x, xScale, xZero, w, wScale, wZero, yScale, yZero, bias]) => {
      const floats = [
        f.dequantized(x, stepsOf(f, x, xScale, xZero)),
        weightFloats(f, w, wScale, wZero, axis),
        biasFloats(f, bias, xScale, wScale, w.shape[axis]),
      ];
      return f.quantized([emit(f, floats)].flat()[0], [yScale, yZero]);
    };
  };

/**
 * TFLite has no dilations, groups and pads here. They are replaced by zeros between weights, by parts, and by a cut or
 * longer image.
 */
const transposed =
  (layout: Layout) =>
  (call: Call): Emit => {
    const { attributes, inputs } = call;
    const spatial = spatialOf(inputs[0]!.dims, layout);
    const { filterLayout, at, kernel } = weightsOf(call, 'iohw');
    const [outputShape, outputPadding] = [attributes.integers('output_shape'), attributes.integers('output_padding')];
    const geometry = slideTransposed(readWindow(attributes), spatial, kernel, { outputShape, outputPadding });
    const { input, kernel: taps, strides, dilations, begins, output } = overTwo(geometry);
    const reached = input.map((size, i) => (size - 1) * strides[i] + (taps[i] - 1) * dilations[i] + 1);
    const before = begins.map((begin) => Math.max(-begin, 0));
    const after = output.map((size, i) => Math.max(begins[i] + size - reached[i], 0));
    const grows = [...before, ...after].some((count) => count > 0);
    const groups = attributes.integer('group', 1);
    const channels = layout === 'nhwc' ? 3 : 1;
    const options = { strides, inputLayout: layout, filterLayout };
    return (f, [x, w, bias]) => {
      const image = inTwo(f, x, firstSpatial(layout));
      const filter = [0, 1].reduce((one, i) => spread(f, one, at + i, dilations[i]), inTwo(f, w, at));
      const images = inParts(f, image, channels, groups);
      const filters = inParts(f, filter, at === 1 ? 3 : 0, groups);
      const inside = bias && !grows && groups === 1;
      const parts = images.map((one, i) =>
        f.plain('convTranspose2d', one, filters[i], { ...options, ...(inside && { bias }) }),
      );
      const whole = groups === 1 ? parts[0] : f.plain('concat', parts, channels);
      const grown = padImage(f, whole, layout, before, after);
      const y = [0, 1].reduce(
        (one, i) => f.part(one, firstSpatial(layout) + i, Math.max(begins[i], 0), output[i]),
        grown,
      );
      const summed = layout === 'nhwc' || !bias ? bias : f.reshape(bias, [...bias.shape, 1, 1]);
      const sum = summed && !inside ? f.plain('add', y, summed) : y;
      return asBefore(f, sum, spatial.length, layout);
    };
  };

function inParts(f: Formula, x: MlOperand, axis: number, count: number): readonly MlOperand[] {
  if (count === 1) return [x];
  return f.several('split', x, count, { axis });
}

/** Inserts zeros between the elements along an axis. */
function spread(f: Formula, x: MlOperand, axis: number, step: number): MlOperand {
  const size = x.shape[axis];
  if (step === 1 || size === 1) return x;
  const [outer, inner] = [x.shape.slice(0, axis), x.shape.slice(axis + 1)];
  const apart = f.reshape(x, [sizeOf(outer), size, 1, sizeOf(inner)]);
  const zeros = f.padded(apart, [0, 0, 0, 0], [0, 0, step - 1, 0]);
  return f.part(f.reshape(zeros, [...outer, size * step, ...inner]), axis, 0, (size - 1) * step + 1);
}

const OVER_TWO = { rank: { input: 0, min: 3, max: 4 }, otherwise: 'more than two spatial axes' };

const QUANTIZED = {
  op: 'QLinearConv',
  types: [BYTES, ['float32'], BYTES, BYTES, ['float32'], BYTES, ['float32'], BYTES, ['int32']],
  requires: [OVER_TWO],
  features: ['signed'],
} satisfies Partial<MlOperator>;

export default [
  { op: 'Conv', types: [FLOATS], requires: [OVER_TWO], emit: convolution('nchw') },
  { op: 'ConvTranspose', types: [FLOATS], requires: [OVER_TWO], emit: transposed('nchw') },
  { op: 'Conv', domain: NHWC_DOMAIN, types: [FLOATS], emit: convolution('nhwc') },
  { op: 'ConvTranspose', domain: NHWC_DOMAIN, types: [FLOATS], emit: transposed('nhwc') },
  { ...QUANTIZED, emit: quantized('nchw') },
  { ...QUANTIZED, domain: NHWC_DOMAIN, emit: quantized('nhwc') },
] satisfies MlOperator[];
