// A convolution of each channel separately, after earlier positions in a state.
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';

function convolve({ attributes, inputs, wants }: Call): Emit {
  const [channels, , taps] = inputs[1]!.dims;
  const swish = ['silu', 'swish'].includes(attributes.text('activation', 'none'));
  const before = taps - 1;
  return (f, [x, w, bias, past]) => {
    const joined = past && before > 0 ? f.plain('concat', [past, x], 2) : f.padded(x, [0, 0, before], [0, 0, 0]);
    const [batch, , positions] = joined.shape;
    const image = f.reshape(joined, [batch, channels, 1, positions]);
    const filter = f.reshape(w, [channels, 1, 1, taps]);
    const made = f.plain('conv2d', image, filter, { groups: channels, ...(bias && { bias }) });
    const y = f.reshape(made, x.shape);
    const out = swish ? f.plain('mul', y, f.plain('sigmoid', y)) : y;
    return wants[1] ? [out, f.part(joined, 2, positions - before, before)] : out;
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
