// Resize along each axis: sizes, scales, and the place of an output position in the input.
import type { Attributes } from './attributes';
import { KernelError } from './kernel';
import { normalizeAxes } from './shape';

export type Mode = 'nearest' | 'linear' | 'cubic';

export interface ResizeAttributes {
  readonly mode: Mode;
  readonly coordinates: string;
  readonly nearest: string;
  readonly policy: string;
  readonly axes: readonly number[];
  readonly cubicA: number;
  readonly excludeOutside: boolean;
  readonly extrapolation: number;
  readonly antialias: boolean;
}

export function readResize(a: Attributes): ResizeAttributes {
  const mode = a.text('mode', 'nearest');
  if (mode !== 'nearest' && mode !== 'linear' && mode !== 'cubic') throw new KernelError(`Resize in mode ${mode}`);
  return {
    mode,
    coordinates: a.text('coordinate_transformation_mode', 'half_pixel'),
    nearest: a.text('nearest_mode', 'round_prefer_floor'),
    policy: a.text('keep_aspect_ratio_policy', 'stretch'),
    axes: a.integers('axes'),
    cubicA: a.number('cubic_coeff_a', -0.75),
    excludeOutside: a.integer('exclude_outside', 0) !== 0,
    extrapolation: a.number('extrapolation_value', 0),
    antialias: a.integer('antialias', 0) !== 0,
  };
}

/** One axis: output position i is at (i + shift) * step / scale + offset in the input. */
export interface Axis {
  readonly input: number;
  readonly output: number;
  /** The axis' growth; the other numbers determine which places correspond. */
  readonly factor: number;
  readonly step: number;
  readonly scale: number;
  readonly shift: number;
  readonly offset: number;
  /** The region that tf_crop_and_resize reads, in fractions of the input. */
  readonly crop: readonly [number, number];
  /** True if the axis is unchanged. */
  readonly kept: boolean;
}

/** The axes of an input 0 of shape `dims`, from the host inputs roi, scales and sizes. */
export function resizeAxes(
  ctx: { data(input: number): readonly number[] | undefined },
  r: ResizeAttributes,
  dims: readonly number[],
): Axis[] {
  const rank = dims.length;
  const chosen = r.axes.length > 0 ? normalizeAxes(r.axes, rank) : dims.map((_, axis) => axis);
  const nonEmpty = (i: number) => {
    const values = ctx.data(i);
    return values && values.length > 0 ? values : undefined;
  };
  const sizes = nonEmpty(3);
  const scales = sizes ? undefined : nonEmpty(2);
  if (!sizes && !scales) throw new KernelError('Resize needs scales or sizes');
  const given = sizes ?? scales!;
  if (given.length !== chosen.length)
    throw new KernelError(`Resize of ${chosen.length} axes with ${given.length} sizes or scales`);
  const roi = r.coordinates === 'tf_crop_and_resize' ? (nonEmpty(1) ?? []) : [];
  if (roi.length > 0 && roi.length !== 2 * chosen.length)
    throw new KernelError(`Resize of ${chosen.length} axes with ${roi.length} numbers of roi, expected two for each`);
  const fitted =
    sizes && r.policy !== 'stretch'
      ? fit(
          r.policy,
          sizes,
          chosen.map((axis) => dims[axis]),
        )
      : undefined;
  const axes = dims.map((input, axis): Axis => {
    const place = chosen.indexOf(axis);
    if (place < 0) return { input, output: input, factor: 1, ...STAYS, crop: [0, 1], kept: true };
    const output = fitted
      ? Math.floor(fitted * input + 0.5)
      : sizes
        ? sizes[place]
        : Math.floor(Math.fround(input * Math.fround(scales![place])));
    if (input === 0 && output > 0) throw new KernelError(`Resize of an empty axis ${axis} to ${output} elements`);
    const scale = fitted ?? (sizes ? output / input : scales![place]);
    const crop = [roi[place] ?? 0, roi[place + chosen.length] ?? 1] as const;
    // As in onnxruntime, even if tf_crop_and_resize would crop.
    const kept = input === output && scale === 1;
    return { input, output, factor: scale, crop, kept, ...coordinate(r, input, output, scale, crop) };
  });
  // As in onnxruntime, whatever the scales.
  return axes.every(({ input, output }) => input === output) ? axes.map((axis) => ({ ...axis, kept: true })) : axes;
}

/** The one scale of not_larger and not_smaller. */
function fit(policy: string, sizes: readonly number[], inputs: readonly number[]): number {
  const scales = sizes.map((size, i) => size / inputs[i]);
  return policy === 'not_larger' ? Math.min(...scales) : Math.max(...scales);
}

/** Output positions are the input's. */
export const STAYS = { step: 1, scale: 1, shift: 0, offset: 0 };

function coordinate(
  { mode, coordinates }: ResizeAttributes,
  input: number,
  output: number,
  scale: number,
  [start, end]: readonly [number, number],
): Pick<Axis, 'step' | 'scale' | 'shift' | 'offset'> {
  const halfPixel = { step: 1, scale, shift: 0.5, offset: -0.5 };
  // All of the output reads one point.
  const point = (offset: number) => ({ ...STAYS, step: 0, offset });
  switch (coordinates) {
    case 'half_pixel':
      return halfPixel;
    case 'pytorch_half_pixel':
      return output > 1 ? halfPixel : point(0);
    case 'half_pixel_symmetric': {
      // In floats, so that a place on a border is the same as onnxruntime's.
      const adjustment = Math.fround(output / Math.fround(Math.fround(scale) * input));
      return { ...halfPixel, offset: (input / 2) * (1 - adjustment) - 0.5 };
    }
    case 'asymmetric':
      return { ...STAYS, scale };
    case 'tf_half_pixel_for_nn':
      return { ...STAYS, scale, shift: 0.5 };
    case 'align_corners':
      if (output <= 1 || input <= 1) return point(0);
      // Nearest follows onnxruntime. For interpolation, ONNX's tests expect the unrounded length.
      return mode === 'nearest'
        ? { ...STAYS, step: input - 1, scale: output - 1 }
        : { ...STAYS, scale: (scale * input - 1) / (input - 1) };
    case 'tf_crop_and_resize': {
      if (output <= 1) return point(0.5 * (start + end) * (input - 1));
      const step = ((end - start) * (input - 1)) / (output - 1);
      return step === 0 ? point(start * (input - 1)) : { ...STAYS, scale: 1 / step, offset: start * (input - 1) };
    }
    default:
      throw new KernelError(`Resize with coordinate_transformation_mode ${coordinates}`);
  }
}

/** Replaces an element: a position outside of the input, which extrapolates. */
export const OUTSIDE = 0xffffffff;

const f = Math.fround;

/** The element that nearest selects, by onnxruntime's arithmetic: floats, and doubles for half_pixel_symmetric. */
export function nearestOf(i: number, axis: Axis, r: ResizeAttributes): number {
  return elementAt(native(i, axis, r), axis, r);
}

function native(i: number, { input, output, factor, crop: [start, end] }: Axis, r: ResizeAttributes): number {
  const [scale, last] = [f(factor), input - 1];
  const halfPixel = f(f((i + 0.5) / scale) - 0.5);
  switch (r.coordinates) {
    case 'half_pixel_symmetric': {
      const adjustment = f(1 - f(output / f(scale * input)));
      return f(f((input / 2) * adjustment) + (i + 0.5) / scale - 0.5);
    }
    case 'pytorch_half_pixel':
      return output > 1 ? halfPixel : 0;
    case 'align_corners':
      return output > 1 ? f(f(i * last) / (output - 1)) : 0;
    case 'asymmetric':
      return f(i / scale);
    case 'tf_half_pixel_for_nn':
      return f((i + 0.5) / scale);
    case 'tf_crop_and_resize':
      if (output <= 1) return f(f(0.5 * f(start + end)) * last);
      return f(f(start * last) + f(f(f(i * f(end - start)) * last) / (output - 1)));
    default:
      return halfPixel;
  }
}

export function elementAt(place: number, { input }: Axis, r: ResizeAttributes): number {
  if (r.coordinates === 'tf_crop_and_resize' && (place < 0 || place > input - 1)) return OUTSIDE;
  return Math.min(Math.max(rounded(place, r.nearest), 0), input - 1);
}

function rounded(place: number, nearest: string): number {
  if (nearest === 'floor') return Math.floor(place);
  if (nearest === 'ceil') return Math.ceil(place);
  // So close to the border between two elements that onnxruntime treats it as a tie.
  const border = Math.floor(place) + 0.5;
  const settled = f(Math.abs(place - border)) <= f(1e-6) ? border : place;
  return nearest === 'round_prefer_floor' ? Math.ceil(f(settled - 0.5)) : Math.floor(f(settled + 0.5));
}
