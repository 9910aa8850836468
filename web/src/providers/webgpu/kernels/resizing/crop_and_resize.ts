// com.microsoft's CropAndResize: parts of images, resized to a common size.
import {
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { INDEX_WGSL, linearMain, linearWorkgroups, load, stored } from '../../wgsl';

interface CropSpec extends Spec {
  readonly nearest: boolean;
  readonly storage: StorageType;
  readonly regions: StorageType;
}

// The corners of a region and of the result coincide; a result of size one is the region's middle.
const CROP: Shader<CropSpec> = {
  name: 'crop_and_resize',
  wgsl: ({ nearest, storage, regions }) => `${INDEX_WGSL}
fn place(first: f32, end: f32, i: u32, count: u32, length: u32) -> f32 {
  let last = f32(length - 1u);
  if (count == 1u) { return 0.5 * (first + end) * last; }
  return first * last + f32(i) * ((end - first) * last / f32(count - 1u));
}
${linearMain(`  let j = i % u.columns;
  let row = i / u.columns % u.rows;
  let channel = i / u.columns / u.rows % u.channels;
  let region = i / u.columns / u.rows / u.channels;
  let at = vec4<f32>(${[0, 1, 2, 3].map((k) => load(regions, 1, `regions[region * 4u + ${k}u]`)).join(', ')});
  let y_at = place(at.x, at.z, row, u.rows, u.height);
  let x_at = place(at.y, at.w, j, u.columns, u.width);
  let image = (u32(index_within(i32(images[region]), u.batch)) * u.channels + channel) * u.height * u.width;
  var value = u.outside;
  if (y_at >= 0.0 && y_at <= f32(u.height - 1u) && x_at >= 0.0 && x_at <= f32(u.width - 1u)) {
${
  nearest
    ? `    value = ${load(storage, 1, 'x[image + u32(floor(y_at + 0.5)) * u.width + u32(floor(x_at + 0.5))]')};`
    : `    let top = image + u32(floor(y_at)) * u.width;
    let bottom = image + u32(ceil(y_at)) * u.width;
    let left = u32(floor(x_at));
    let right = u32(ceil(x_at));
    let across = x_at - floor(x_at);
    let above = ${load(storage, 1, 'x[top + left]')}
      + (${load(storage, 1, 'x[top + right]')} - ${load(storage, 1, 'x[top + left]')}) * across;
    let below = ${load(storage, 1, 'x[bottom + left]')}
      + (${load(storage, 1, 'x[bottom + right]')} - ${load(storage, 1, 'x[bottom + left]')}) * across;
    value = above + (below - above) * (y_at - floor(y_at));`
}
  }
  y[i] = ${stored(storage, 1, 'value')};`)}`,
};

interface Attributes {
  readonly nearest: boolean;
  readonly outside: number;
}

const cropAndResize: Kernel<Attributes> = {
  op: 'CropAndResize',
  domain: MICROSOFT_DOMAIN,
  types: [['float32', 'float16'], ['float32', 'float16'], ['int32'], []],
  attributes: (a) => ({
    nearest: a.text('mode', 'bilinear') === 'nearest',
    outside: a.number('extrapolation_value', 0),
  }),
  resolve(ctx, { nearest, outside }) {
    const [x, regions, images, size] = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.data(3)];
    if (x.dims.length !== 4 || regions.dims[1] !== 4 || images.size !== regions.dims[0]) {
      throw new KernelError(
        `CropAndResize of [${x.dims}] with regions [${regions.dims}] and ${images.size} batch indices`,
      );
    }
    if (size?.length !== 2 || size[0] < 1 || size[1] < 1)
      throw new KernelError(`CropAndResize: crop_size [${size}] is not two numbers above 0`);
    const [batch, channels, height, width] = x.dims;
    const y = ctx.output(0, [regions.dims[0], channels, ...size]);
    if (y.size === 0) return;
    ctx.dispatch({
      shader: CROP,
      spec: { nearest, storage: x.storage, regions: regions.storage },
      inputs: { x, regions, images },
      outputs: { y },
      uniforms: { count: y.size, batch, channels, height, width, rows: size[0], columns: size[1], outside },
      f32: ['outside'],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [cropAndResize];
