// Images and sliding windows: WebNN has two axes where ONNX has one or two. Its own pads are used only if its backends
// agree on them.
import type { Geometry } from '../../../../contract/window';
import type { MlOperand } from '../../ml';
import type { Formula } from '../../formula';

export type Layout = 'nchw' | 'nhwc';

export const firstSpatial = (layout: Layout): number => (layout === 'nhwc' ? 1 : 2);

export const spatialOf = (dims: readonly number[], layout: Layout): readonly number[] =>
  layout === 'nhwc' ? dims.slice(1, -1) : dims.slice(2);

/** Inserts an axis of one element before the only spatial one, at `axis`. */
export const inTwo = (f: Formula, x: MlOperand, axis: number): MlOperand =>
  x.shape.length === 4 ? x : f.reshape(x, [...x.shape.slice(0, axis), 1, ...x.shape.slice(axis)]);

/** Removes it again. Channels-first images end in a barrier (`Formula.apart`). */
export function asBefore(f: Formula, y: MlOperand, axes: number, layout: Layout): MlOperand {
  if (axes === 2) return layout === 'nchw' ? f.apart(y) : y;
  const at = firstSpatial(layout);
  return f.reshape(
    y,
    y.shape.filter((_, i) => i !== at),
  );
}

/** The same over two axes. */
export function overTwo(geometry: Geometry): Geometry {
  if (geometry.input.length === 2) return geometry;
  const { input, kernel, strides, dilations, begins, ends, output } = geometry;
  return {
    input: [1, ...input],
    kernel: [1, ...kernel],
    strides: [1, ...strides],
    dilations: [1, ...dilations],
    begins: [0, ...begins],
    ends: [0, ...ends],
    output: [1, ...output],
  };
}

/** WebNN's form of pads: start and end of each axis. */
export const paddingOf = (begins: readonly number[], ends: readonly number[]): number[] =>
  begins.flatMap((begin, i) => [begin, ends[i]]);

/** If windows end before the image along an axis, TFLite returns only zeros with pads along another axis. */
export const endsEarly = ({ input, kernel, strides, dilations, output }: Geometry): boolean =>
  output.some((size, i) => (size - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 < input[i]);

export function padImage(
  f: Formula,
  x: MlOperand,
  layout: Layout,
  begins: readonly number[],
  ends: readonly number[],
  value = 0,
): MlOperand {
  const around = (counts: readonly number[]) => (layout === 'nhwc' ? [0, ...counts, 0] : [0, 0, ...counts]);
  return f.padded(x, around(begins), around(ends), value);
}
