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

/**
 * Where output position i lies in the input: at (i + shift) · by · times / scale + offset, each step in float32, as
 * onnxruntime computes it. Where a place falls on the border between two elements, nearest then chooses the same one.
 */
export interface Place {
  readonly shift: number;
  readonly by: number;
  readonly times: number;
  readonly scale: number;
  readonly offset: number;
  /** What a float32 does not hold of the offset. */
  readonly rest: number;
}

export interface Axis extends Place {
  readonly input: number;
  readonly output: number;
  /** By how much it grows. */
  readonly factor: number;
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
  const all = dims.map((input, axis): Axis => {
    const place = chosen.indexOf(axis);
    if (place < 0) return { input, output: input, factor: 1, kept: true, ...SAME };
    const given = fitted ?? (sizes ? undefined : Math.fround(scales![place]));
    const output = fitted
      ? Math.floor(fround(fitted * input) + 0.5)
      : sizes
        ? sizes[place]
        : Math.floor(fround(input * given!));
    const factor = given ?? fround(output / input);
    const crop: readonly [number, number] = [fround(roi[place] ?? 0), fround(roi[place + chosen.length] ?? 1)];
    // As in onnxruntime, also where tf_crop_and_resize would crop.
    const kept = input === output && factor === 1;
    return { input, output, factor, kept, ...(kept ? SAME : coordinates(r, input, output, factor, crop)) };
  });
  return all.every(({ input, output }) => input === output) ? all.map((axis) => ({ ...axis, kept: true })) : all;
}

const { fround } = Math;

/** The one scale of not_larger and not_smaller. */
function fit(policy: string, sizes: readonly number[], inputs: readonly number[]): number {
  const scales = sizes.map((size, i) => fround(size / inputs[i]));
  return policy === 'not_larger' ? Math.min(...scales) : Math.max(...scales);
}

const SAME: Place = { shift: 0, by: 1, times: 1, scale: 1, offset: 0, rest: 0 };
/** A whole axis at one place. */
const at = (offset: number): Place => ({ ...SAME, by: 0, offset: fround(offset) });

function coordinates(
  r: ResizeAttributes,
  input: number,
  output: number,
  scale: number,
  [start, end]: readonly [number, number],
): Place {
  const halfPixel = { ...SAME, shift: 0.5, scale, offset: -0.5 };
  const last = input - 1;
  switch (r.coordinates) {
    case 'half_pixel':
      return halfPixel;
    case 'pytorch_half_pixel':
      return output > 1 ? halfPixel : at(0);
    case 'half_pixel_symmetric': {
      const adjustment = fround(output / fround(scale * input));
      const moved = fround((input / 2) * fround(1 - adjustment)) - 0.5;
      return { ...halfPixel, offset: fround(moved), rest: moved - fround(moved) };
    }
    case 'asymmetric':
      return { ...SAME, scale };
    case 'tf_half_pixel_for_nn':
      return { ...SAME, shift: 0.5, scale };
    case 'align_corners':
      // Nearest is onnxruntime's. Of interpolation, ONNX's tests expect the unrounded length.
      return output > 1
        ? { ...SAME, by: last, scale: r.mode === 'nearest' ? output - 1 : fround(scale * input) - 1 }
        : at(0);
    case 'tf_crop_and_resize': {
      if (output <= 1) return at(0.5 * fround(start + end) * last);
      return { ...SAME, by: fround(end - start), times: last, scale: output - 1, offset: fround(start * last) };
    }
    default:
      throw new KernelError(`Resize with coordinate_transformation_mode ${r.coordinates}`);
  }
}
