// AffineGrid: the places, from -1 to 1, at which GridSample samples for an affine transform of the image.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { FLOATS, HOST, linearMain, linearWorkgroups, load, sizeOf, stored } from '../../wgsl';

interface GridSpec extends Spec {
  readonly axes: number;
  readonly aligned: boolean;
  readonly type: StorageType;
}

// y is [batch, spatial axes…, axes]; row r of a place is theta's row r times (x, y, z, 1), x being the last axis.
const GRID: Shader<GridSpec> = {
  name: 'affine_grid',
  wgsl({ axes, aligned, type }) {
    // For one place, native's value, as in the core.
    const position = aligned
      ? 'select(2.0 * index / (length - 1.0) - 1.0, 1.0, length == 1.0)'
      : '(2.0 * index + 1.0) / length - 1.0';
    const terms = Array.from(
      { length: axes },
      (_, k) =>
        `  sum += ${load(type, 1, `theta[at + ${k}u]`)} * position(rest % u.size_${k}, f32(u.size_${k}));\n` +
        `  rest /= u.size_${k};`,
    );
    return `fn position(place: u32, length: f32) -> f32 {
  let index = f32(place);
  return ${position};
}
${linearMain(`  var rest = i / ${axes}u;
  let at = (rest / u.places * ${axes}u + i % ${axes}u) * ${axes + 1}u;
  var sum = ${load(type, 1, `theta[at + ${axes}u]`)};
${terms.join('\n')}
  y[i] = ${stored(type, 1, 'sum')};`)}`;
  },
};

const affineGrid: Kernel<boolean> = {
  op: 'AffineGrid',
  types: [FLOATS, HOST],
  attributes: (given) => given.integer('align_corners', 0) !== 0,
  resolve(ctx, aligned) {
    const theta = ctx.input(0);
    const size = ctx.data(1) ?? [];
    const [batch, , ...spatial] = size;
    const axes = spatial.length;
    if ((axes !== 2 && axes !== 3) || theta.dims.join() !== [batch, axes, axes + 1].join())
      throw new KernelError(`AffineGrid of theta [${theta.dims}] for an image of shape [${size}]`);
    const y = ctx.output(0, [batch, ...spatial, axes]);
    ctx.dispatch({
      shader: GRID,
      spec: { axes, aligned, type: theta.storage },
      inputs: { theta },
      outputs: { y },
      uniforms: { count: y.size, places: sizeOf(spatial), size: [...spatial].reverse() },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [affineGrid];
