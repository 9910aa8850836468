// WGSL of where an output position lies in the input (see Place).
import type { DeviceTraits, Spec } from '../../../contract/kernel';
import { type Division, division, divisionText, quotient } from '../../../wgsl/division';
import type { Place, ResizeAttributes } from './axes';

export interface PlaceSpec extends Division, Spec {
  /** Whether places are multiplied before they are divided: `by` and `times`. */
  readonly stretched: boolean;
  /** Whether quotient and offset are added as if they were doubles. */
  readonly precise: boolean;
}

export const PLACE_F32 = ['shift', 'by', 'times', 'scale', 'offset', 'rest'];

export function placeSpec({ mode, coordinates }: ResizeAttributes, device: DeviceTraits): PlaceSpec {
  return {
    stretched: !['half_pixel', 'half_pixel_symmetric', 'asymmetric', 'tf_half_pixel_for_nn'].includes(coordinates),
    precise: mode === 'nearest' && coordinates === 'half_pixel_symmetric',
    ...division(device),
  };
}

/** The uniforms, with a number for each axis. */
export function placeUniforms(axes: readonly Place[], { stretched, precise }: PlaceSpec) {
  return {
    shift: axes.map(({ shift }) => shift),
    scale: axes.map(({ scale }) => scale),
    offset: axes.map(({ offset }) => offset),
    ...(stretched && { by: axes.map(({ by }) => by), times: axes.map(({ times }) => times) }),
    ...(precise && { rest: axes.map(({ rest }) => rest) }),
  };
}

/** The place of `i` along an axis. */
export function placeOf(i: string, axis: number, { stretched, precise }: PlaceSpec): string {
  const numbers = ['shift', ...(stretched ? ['by', 'times'] : []), 'scale', 'offset', ...(precise ? ['rest'] : [])];
  return `place_of(${i}, ${numbers.map((name) => `u.${name}_${axis}`).join(', ')})`;
}

export function placeText(spec: PlaceSpec): string {
  const { stretched, precise, helped } = spec;
  const parameters = `i: u32, shift: f32${stretched ? ', by: f32, times: f32' : ''}, scale: f32, offset: f32${
    precise ? ', rest: f32' : ''
  }`;
  const x = stretched ? '(f32(i) + shift) * by * times' : 'f32(i) + shift';
  if (!precise)
    return `${divisionText(spec)}
fn place_of(${parameters}) -> f32 { return ${quotient(spec, `(${x})`, 'scale')} + offset; }
`;
  // What a quotient, and then a sum, leaves is added to it. Without a fused multiply-add, a product in halves.
  return `${divisionText(spec)}
fn upper(x: f32) -> f32 { let c = 4097.0 * x; return c - (c - x); }
fn left(x: f32, q: f32, by: f32) -> f32 {
${
  helped
    ? '  return fma(-q, by, x);'
    : `  let p = q * by;
  let q1 = upper(q);
  let b1 = upper(by);
  return (x - p) - (((q1 * b1 - p) + q1 * (by - b1) + (q - q1) * b1) + (q - q1) * (by - b1));`
}
}
fn place_of(${parameters}) -> f32 {
  let x = ${x};
  let q = ${quotient(spec, 'x', 'scale')};
  let sum = q + offset;
  let added = sum - q;
  return sum + (((q - (sum - added)) + (offset - added)) + (left(x, q, scale) / scale + rest));
}
`;
}
