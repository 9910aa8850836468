// Resize with antialias for shrinking axes: a wider filter, one axis after the other. For floats only: integers are
// rounded between the axes in other ways (see requires).
import type { Context, Shader, Spec, StorageType, Tensor } from '../../../../../contract/kernel';
import { load, stored } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { sizeOf } from '../../../../../contract/shape';
import type { Axis, ResizeAttributes } from '../../../../../contract/resizing';

interface AntialiasSpec extends Spec {
  readonly cubic: boolean;
  readonly excludeOutside: boolean;
  readonly storage: StorageType;
}

export function antialiased(ctx: Context, x: Tensor, y: Tensor, axes: readonly Axis[], r: ResizeAttributes): void {
  const changing = axes.flatMap(({ kept }, axis) => (kept ? [] : [axis]));
  let source = x;
  changing.forEach((axis, i) => {
    const dims = source.dims.map((dim, j) => (j === axis ? axes[axis].output : dim));
    const target = i === changing.length - 1 ? y : ctx.temp(dims, x.dtype);
    const { input, output, factor, scale, shift, offset } = axes[axis];
    ctx.dispatch({
      shader: SHADER,
      spec: { cubic: r.mode === 'cubic', excludeOutside: r.excludeOutside, storage: x.storage },
      inputs: { x: source },
      outputs: { y: target },
      uniforms: {
        count: sizeOf(dims),
        inner: sizeOf(dims.slice(axis + 1)),
        input,
        output,
        scale,
        shift,
        offset,
        narrow: Math.min(factor, 1),
        cubic_a: r.cubicA,
      },
      f32: ['scale', 'shift', 'offset', 'narrow', 'cubic_a'],
      workgroups: linearWorkgroups(sizeOf(dims), ctx.device),
    });
    source = target;
  });
}

const SHADER: Shader<AntialiasSpec> = {
  name: 'resize_antialias__any',
  wgsl: ({ cubic, excludeOutside, storage }) => {
    const weight = cubic
      ? `  let a = u.cubic_a;
  if (d < 1.0) { return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0; }
  return select(0.0, ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a, d < 2.0);`
      : '  return max(0.0, 1.0 - d);';
    // The filter is as wide as an output pixel in the input, and at least as wide as without antialiasing.
    return `fn weight(d: f32) -> f32 {
${weight}
}
${linearMain(`  let position = (f32(i / u.inner % u.output) + u.shift) / u.scale + u.offset;
  let reach = ${cubic ? '2.0' : '1.0'} / u.narrow;
  let first = i32(floor(position - reach)) + 1;
  let last = i32(ceil(position + reach)) - 1;
  let start = i / (u.inner * u.output) * u.input;
  var sum = 0.0;
  var total = 0.0;
  for (var p = first; p <= last; p++) {
    let inside = clamp(p, 0, i32(u.input) - 1);
    ${excludeOutside ? 'if (inside != p) { continue; }' : ''}
    let w = weight(abs(f32(p) - position) * u.narrow);
    sum += w * ${load(storage, 1, 'x[(start + u32(inside)) * u.inner + i % u.inner]')};
    total += w;
  }
  y[i] = ${stored(storage, 1, 'sum / total')};`)}`;
  },
};
