// Pools over two axes.
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { windowOf } from './shared/windows';

function pool(name: string) {
  return (call: Call): Emit => {
    const { attributes } = call;
    const windowDimensions = attributes.integers('kernel_shape');
    const rounded = attributes.integer('ceil_mode', 0) ? 'ceil' : 'floor';
    const window = windowOf(attributes, call.inputs[0]!.dims.slice(2), windowDimensions);
    const options = { ...window, windowDimensions, outputShapeRounding: rounded, roundingType: rounded };
    return (builder, [x]) => builder[name](x as never, options as never) as never;
  };
}

const global =
  (name: string) =>
  (): Emit =>
  (builder, [x]) =>
    builder[name](x as never) as never;

const FOUR_AXES = { noOutput: 1, otherwise: 'indices' };
const UNPADDED = { attribute: 'count_include_pad', values: [0], otherwise: 'averages that count what is padded' };

export default [
  { op: 'MaxPool', types: [FLOATS], requires: [FOUR_AXES], emit: pool('maxPool2d') },
  { op: 'AveragePool', types: [FLOATS], requires: [UNPADDED], emit: pool('averagePool2d') },
  { op: 'GlobalAveragePool', types: [FLOATS], emit: global('averagePool2d') },
  { op: 'GlobalMaxPool', types: [FLOATS], emit: global('maxPool2d') },
] satisfies MlOperator[];
