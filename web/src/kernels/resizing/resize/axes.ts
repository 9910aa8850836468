// What Resize does along each axis: sizes, scales, and where an output position lies in the input.
import type { Attributes } from '../../../contract/attributes';
import { type Context, KernelError } from '../../../contract/kernel';
import { normalizeAxes } from '../../../wgsl/shape';
import { type ColumnAttributes, readColumns } from '../../shared/columns';

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
  readonly columns: ColumnAttributes;
}

export function attributes(a: Attributes): ResizeAttributes {
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
    columns: readColumns(a),
  };
}

/** One axis: output position i lies at (i + shift) / scale + offset in the input. */
export interface Axis {
  readonly input: number;
  readonly output: number;
  /** By how much it grows; `scale`, `shift` and `offset` say which places of it belong to each other. */
  readonly factor: number;
  readonly scale: number;
  readonly shift: number;
  readonly offset: number;
  /** Nothing happens along this axis. */
  readonly kept: boolean;
}

/** The axes of an input 0 of shape `dims`, from the host inputs roi, scales and sizes. */
export function resizeAxes(ctx: Context, r: ResizeAttributes, dims: readonly number[]): Axis[] {
  const rank = dims.length;
  const chosen = r.axes.length > 0 ? normalizeAxes(r.axes, rank) : dims.map((_, axis) => axis);
  const nonEmpty = (i: number) => {
    const values = ctx.data(i);
    return values && values.length > 0 ? values : undefined;
  };
  const sizes = nonEmpty(3);
  const scales = sizes ? undefined : nonEmpty(2);
  if (!sizes && !scales) throw new KernelError('Resize needs scales or sizes');
  const roi = r.coordinates === 'tf_crop_and_resize' ? (nonEmpty(1) ?? []) : [];
  for (const given of [sizes, scales]) {
    if (given && given.length !== chosen.length)
      throw new KernelError(`Resize of ${chosen.length} axes with ${given.length} sizes or scales`);
  }
  const fitted =
    sizes && r.policy !== 'stretch'
      ? fit(
          r.policy,
          sizes,
          chosen.map((axis) => dims[axis]),
        )
      : undefined;
  return dims.map((input, axis) => {
    const place = chosen.indexOf(axis);
    if (place < 0) return { input, output: input, factor: 1, scale: 1, shift: 0, offset: 0, kept: true };
    const output = fitted
      ? Math.floor(fitted * input + 0.5)
      : sizes
        ? sizes[place]
        : Math.floor(Math.fround(input * Math.fround(scales![place])));
    const scale = fitted ?? (sizes ? output / input : scales![place]);
    const crop: readonly [number, number] = [roi[place] ?? 0, roi[place + chosen.length] ?? 1];
    // As in onnxruntime, also where tf_crop_and_resize would crop.
    const kept = input === output && scale === 1;
    return { input, output, factor: scale, kept, ...coordinate(r.coordinates, input, output, scale, crop) };
  });
}

/** The one scale of not_larger and not_smaller. */
function fit(policy: string, sizes: readonly number[], inputs: readonly number[]): number {
  const scales = sizes.map((size, i) => size / inputs[i]);
  return policy === 'not_larger' ? Math.min(...scales) : Math.max(...scales);
}

function coordinate(
  mode: string,
  input: number,
  output: number,
  scale: number,
  [start, end]: readonly [number, number],
): Pick<Axis, 'scale' | 'shift' | 'offset'> {
  const halfPixel = { scale, shift: 0.5, offset: -0.5 };
  // A whole axis at one point: the scale is then without meaning.
  const point = (offset: number) => ({ scale: 1, shift: 0, offset });
  switch (mode) {
    case 'half_pixel':
      return halfPixel;
    case 'pytorch_half_pixel':
      return output > 1 ? halfPixel : { ...point(0), shift: 0 };
    case 'half_pixel_symmetric': {
      const adjustment = output / (scale * input);
      return { ...halfPixel, offset: (input / 2) * (1 - adjustment) - 0.5 };
    }
    case 'asymmetric':
      return { scale, shift: 0, offset: 0 };
    case 'tf_half_pixel_for_nn':
      return { scale, shift: 0.5, offset: 0 };
    case 'align_corners':
      // By ONNX's formula the last point is that of the unrounded length.
      return output > 1 && input > 1
        ? { scale: (scale * input - 1) / (input - 1), shift: 0, offset: 0 }
        : { scale: LARGE, shift: 0, offset: 0 };
    case 'tf_crop_and_resize': {
      if (output <= 1) return point(0.5 * (start + end) * (input - 1));
      const step = ((end - start) * (input - 1)) / (output - 1);
      return { scale: step === 0 ? LARGE : 1 / step, shift: 0, offset: start * (input - 1) };
    }
    default:
      throw new KernelError(`Resize with coordinate_transformation_mode ${mode}`);
  }
}

/** As a scale: everything at one point. */
const LARGE = 1e30;
