// Tables of the elements that nearest selects, if the shader's floats would select others.
import type { Context, Shader, Tensor } from '../../../../../contract/kernel';
import { DType } from '../../../../../schema';
import { type Axis, elementAt, nearestOf, type ResizeAttributes } from '../../../../../contract/resizing';

const f = Math.fround;

/** Elements by output position; undefined if the shader finds the same ones. */
export function tableOf(axis: Axis, r: ResizeAttributes): number[] | undefined {
  const positions = Array.from({ length: axis.output }, (_, i) => i);
  const table = positions.map((i) => nearestOf(i, axis, r));
  return positions.some((i) => elementAt(computed(i, axis), axis, r) !== table[i]) ? table : undefined;
}

/** The shader's computation. */
function computed(i: number, { step, scale, shift, offset }: Axis): number {
  return f(f(f(f(i + f(shift)) * f(step)) / f(scale)) + f(offset));
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

/** Tables one after another, in GPU memory: their contents follow from shapes, so only the first run writes them. */
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
