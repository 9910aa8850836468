// MaxRoiPool: the largest element of each bin of each region.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { FLOATS, linearMain, linearWorkgroups, load, stored } from '../../wgsl';

interface RegionSpec extends Spec {
  readonly type: StorageType;
}

// A region is [image, left, top, right, bottom] in the coordinates of the original; bins may overlap by a row or
// column, or be empty.
const REGIONS: Shader<RegionSpec> = {
  name: 'max_roi_pool',
  wgsl({ type }) {
    const corner = (k: number) => `rounded(${load(type, 1, `rois[roi * 5u + ${k}u]`)} * u.scale)`;
    return `fn rounded(x: f32) -> f32 { return trunc(x + select(0.5, -0.5, x < 0.0)); }
fn edge(place: f32, length: u32) -> u32 { return u32(clamp(place, 0.0, f32(length))); }
${linearMain(`  let column = f32(i % u.pooled_width);
  let row = f32(i / u.pooled_width % u.pooled_height);
  let channel = i / (u.pooled_width * u.pooled_height) % u.channels;
  let roi = i / (u.pooled_width * u.pooled_height * u.channels);
  let image = u32(${load(type, 1, 'rois[roi * 5u]')});
  let left = ${corner(1)};
  let top = ${corner(2)};
  let bin_width = max(${corner(3)} - left + 1.0, 1.0) / f32(u.pooled_width);
  let bin_height = max(${corner(4)} - top + 1.0, 1.0) / f32(u.pooled_height);
  let first_row = edge(floor(row * bin_height) + top, u.height);
  let end_row = edge(ceil((row + 1.0) * bin_height) + top, u.height);
  let first_column = edge(floor(column * bin_width) + left, u.width);
  let end_column = edge(ceil((column + 1.0) * bin_width) + left, u.width);
  let plane = (image * u.channels + channel) * u.height * u.width;
  var found = 0.0;
  var any = false;
  for (var r = first_row; r < end_row; r++) {
    for (var c = first_column; c < end_column; c++) {
      let value = ${load(type, 1, 'x[plane + r * u.width + c]')};
      if (!any || value > found) { found = value; }
      any = true;
    }
  }
  y[i] = ${stored(type, 1, 'found')};`)}`;
  },
};

const maxRoiPool: Kernel<{ pooled: readonly number[]; scale: number }> = {
  op: 'MaxRoiPool',
  types: [FLOATS],
  attributes: (given) => ({ pooled: given.integers('pooled_shape'), scale: given.number('spatial_scale', 1) }),
  resolve(ctx, { pooled, scale }) {
    const [x, rois] = [ctx.input(0), ctx.input(1)];
    const [, channels, height, width] = x.dims;
    if (x.dims.length !== 4 || rois.dims.length !== 2 || rois.dims[1] !== 5 || pooled.length !== 2) {
      throw new KernelError(`MaxRoiPool of [${x.dims}] in regions [${rois.dims}] to [${pooled}]`);
    }
    const y = ctx.output(0, [rois.dims[0], channels, ...pooled]);
    ctx.dispatch({
      shader: REGIONS,
      spec: { type: x.storage },
      inputs: { x, rois },
      outputs: { y },
      uniforms: { count: y.size, channels, height, width, pooled_height: pooled[0], pooled_width: pooled[1], scale },
      f32: ['scale'],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [maxRoiPool];
