// A convolution of each channel by itself, behind what a state kept of earlier positions.
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { padded, part, put, reshaped } from './shared/nodes';

function convolve({ attributes, inputs, wants }: Call): Emit {
  const [channels, , taps] = inputs[1]!.dims;
  const swish = ['silu', 'swish'].includes(attributes.text('activation', 'none'));
  const before = taps - 1;
  return (builder, [x, w, bias, past]) => {
    const joined =
      past && before > 0 ? put(builder, 'concat', [past, x], 2) : padded(builder, x, [0, 0, before], [0, 0, 0]);
    const [batch, , positions] = joined.shape;
    const image = reshaped(builder, joined, [batch, channels, 1, positions]);
    const filter = reshaped(builder, w, [channels, 1, 1, taps]);
    const made = put(builder, 'conv2d', image, filter, { groups: channels, ...(bias && { bias }) });
    const y = reshaped(builder, made, x.shape);
    const out = swish ? put(builder, 'mul', y, put(builder, 'sigmoid', y)) : y;
    return wants[1] ? [out, part(builder, joined, 2, positions - before, before)] : out;
  };
}

const only = (attribute: string, value: number, otherwise: string) => ({ attribute, values: [value], otherwise });

export default [
  {
    op: 'CausalConvWithState',
    types: [FLOATS],
    requires: [
      only('ndim', 1, 'more than one spatial axis'),
      only('dilation', 1, 'dilations'),
      only('state_window', 0, 'a state of another length'),
      only('channels_last', 0, 'channels behind positions'),
    ],
    emit: convolve,
  },
] satisfies MlOperator[];
