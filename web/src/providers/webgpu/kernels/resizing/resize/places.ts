// Which elements nearest takes, by onnxruntime's arithmetic: floats, and doubles of half_pixel_symmetric. Where the
// shader's floats would take others, it reads them in a table.
import type { Context, Shader, Tensor } from '../../../../../contract/kernel';
import { DType } from '../../../../../schema';
import type { Axis, ResizeAttributes } from './axes';

/** In a table: a position outside of the input, which extrapolates. */
export const OUTSIDE = 0xffffffff;

const f = Math.fround;

/** Elements by output position; undefined where the shader finds the same ones. */
export function tableOf(axis: Axis, r: ResizeAttributes): number[] | undefined {
  const crops = r.coordinates === 'tf_crop_and_resize';
  const positions = Array.from({ length: axis.output }, (_, i) => i);
  const table = positions.map((i) => elementAt(native(i, axis, r), axis, r, crops));
  return positions.some((i) => elementAt(computed(i, axis), axis, r, crops) !== table[i]) ? table : undefined;
}

/** As the shader computes it. */
function computed(i: number, { step, scale, shift, offset }: Axis): number {
  return f(f(f(f(i + f(shift)) * f(step)) / f(scale)) + f(offset));
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

function elementAt(place: number, { input }: Axis, r: ResizeAttributes, crops: boolean): number {
  if (crops && (place < 0 || place > input - 1)) return OUTSIDE;
  return Math.min(Math.max(rounded(place, r.nearest), 0), input - 1);
}

function rounded(place: number, nearest: string): number {
  if (nearest === 'floor') return Math.floor(place);
  if (nearest === 'ceil') return Math.ceil(place);
  // As near to the border between two elements as onnxruntime calls it a tie.
  const border = Math.floor(place) + 0.5;
  const settled = f(Math.abs(place - border)) <= f(1e-6) ? border : place;
  return nearest === 'round_prefer_floor' ? Math.ceil(f(settled - 0.5)) : Math.floor(f(settled + 0.5));
}

/** Numbers that a dispatch writes. */
const AT_ONCE = 64;

const WRITE: Shader<Record<string, never>> = {
  name: 'resize_table__any',
  wgsl: () => `@compute @workgroup_size(1)
fn main() {
${Array.from({ length: AT_ONCE }, (_, i) => `  table[u.first + ${i}u] = u.element_${i};`).join('\n')}
}`,
};

/** Tables one after another, in memory of the GPU: shapes decide what is in them, so the first run writes them. */
export function written(ctx: Context, tables: readonly (readonly number[])[]): Tensor {
  const all = tables.flat();
  const count = Math.ceil(all.length / AT_ONCE);
  const table = ctx.temp([count * AT_ONCE], DType.uint32);
  for (let first = 0; first < all.length; first += AT_ONCE) {
    const element = Array.from({ length: AT_ONCE }, (_, i) => all[first + i] ?? 0);
    ctx.dispatch({
      shader: WRITE,
      spec: {},
      inputs: {},
      outputs: { table },
      uniforms: { first, element },
      workgroups: [1, 1, 1],
    });
  }
  return table;
}
