// Windows of convolutions and pools over two axes: ONNX's attributes as WebNN's options.
import type { Attributes } from '../../../../contract/attributes';

export interface Window {
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  /** Begin and end of the height, begin and end of the width. */
  readonly padding: readonly number[];
}

export function windowOf(attributes: Attributes, spatial: readonly number[], kernel: readonly number[]): Window {
  const strides = attributes.integers('strides', [1, 1]);
  const dilations = attributes.integers('dilations', [1, 1]);
  const [top, left, bottom, right] = attributes.integers('pads', [0, 0, 0, 0]);
  const same = attributes.text('auto_pad', 'NOTSET');
  if (!same.startsWith('SAME')) return { strides, dilations, padding: [top, bottom, left, right] };
  const padding = spatial.flatMap((size, i) => {
    const reach = (kernel[i] - 1) * dilations[i] + 1;
    const all = Math.max((Math.ceil(size / strides[i]) - 1) * strides[i] + reach - size, 0);
    const less = all >> 1;
    return same === 'SAME_UPPER' ? [less, all - less] : [all - less, less];
  });
  return { strides, dilations, padding };
}
