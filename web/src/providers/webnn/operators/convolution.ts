// Convolutions over two axes.
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import type { MlOperand } from '../ml';
import { windowOf } from './shared/windows';

function convolution(layout: 'nchw' | 'nhwc') {
  return (call: Call): Emit => {
    const { attributes } = call;
    const [x, w] = call.inputs;
    const spatial = layout === 'nhwc' ? x!.dims.slice(1, 3) : x!.dims.slice(2);
    const kernel = layout === 'nhwc' ? w!.dims.slice(1, 3) : w!.dims.slice(2);
    const options = {
      ...windowOf(attributes, spatial, kernel),
      groups: attributes.integer('group', 1),
      inputLayout: layout,
      filterLayout: layout === 'nhwc' ? 'ohwi' : 'oihw',
    };
    return (builder, [input, filter, bias]: readonly MlOperand[]) =>
      builder.conv2d(input as never, filter as never, { ...options, ...(bias && { bias }) } as never) as MlOperand;
  };
}

export default [{ op: 'Conv', types: [FLOATS], emit: convolution('nchw') }] satisfies MlOperator[];
