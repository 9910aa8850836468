// RoiAlign: each output is the mean, or the largest, of the samples in its part of a region. One thread for an output.
import type { Kernel, Shader, Spec, StorageType } from '../../../../contract/kernel';
import { load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';

interface RoiSpec extends Spec {
  readonly max: boolean;
  readonly halfPixel: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<RoiSpec> = {
  name: 'roi_align__any',
  wgsl({ max, halfPixel, storage }) {
    const pixel = (y: string, x: string) => load(storage, 1, `x[(plane + ${y}) * u.width + ${x}]`);
    // Samples beyond a pixel around the image count as 0 and are not walked: a region may be of any size.
    return `fn near(start: f32, bin: f32, samples: u32, size: u32) -> vec2<u32> {
  if (bin == 0.0) { return vec2<u32>(0u, samples); }
  let step = bin / f32(samples);
  let edges = vec2<f32>(-1.0 - start, f32(size) - start) / step;
  let begin = u32(clamp(floor(min(edges.x, edges.y) - 0.5), 0.0, f32(samples)));
  let end = u32(clamp(ceil(max(edges.x, edges.y) + 0.5), 0.0, f32(samples)));
  // If edges are NaN, begin and end are undefined.
  let most = select(u.samples, 2u * size + 6u, u.samples == 0u);
  return vec2<u32>(begin, min(min(end, samples), begin + most));
}
${linearMain(`  let column = i % u.out_w;
  let row = i / u.out_w % u.out_h;
  let channel = i / (u.out_w * u.out_h) % u.channels;
  let region = i / (u.out_w * u.out_h * u.channels);
  let plane = (u32(batches[region]) * u.channels + channel) * u.height;
  let shift = ${halfPixel ? '0.5' : '0.0'};
  let left = f32(rois[region * 4u]) * u.scale - shift;
  let top = f32(rois[region * 4u + 1u]) * u.scale - shift;
  let wide = f32(rois[region * 4u + 2u]) * u.scale - shift - left;
  let high = f32(rois[region * 4u + 3u]) * u.scale - shift - top;
  let bin_w = ${halfPixel ? 'wide' : 'max(wide, 1.0)'} / f32(u.out_w);
  let bin_h = ${halfPixel ? 'high' : 'max(high, 1.0)'} / f32(u.out_h);
  let samples_x = select(u.samples, u32(max(ceil(bin_w), 0.0)), u.samples == 0u);
  let samples_y = select(u.samples, u32(max(ceil(bin_h), 0.0)), u.samples == 0u);
  var value = 0.0;
  var first = true;
  let rows = near(top + bin_h * f32(row), bin_h, samples_y, u.height);
  let columns = near(left + bin_w * f32(column), bin_w, samples_x, u.width);
  for (var sy = rows.x; sy < rows.y; sy++) { for (var sx = columns.x; sx < columns.y; sx++) {
    let py = top + bin_h * (f32(row) + (f32(sy) + 0.5) / f32(samples_y));
    let px = left + bin_w * (f32(column) + (f32(sx) + 0.5) / f32(samples_x));
    var corners = vec4<f32>(0.0);
    if (u.height > 0u && u.width > 0u && py >= -1.0 && py <= f32(u.height) && px >= -1.0 && px <= f32(u.width)) {
      let y_in = clamp(py, 0.0, f32(u.height - 1u));
      let x_in = clamp(px, 0.0, f32(u.width - 1u));
      let y_0 = u32(y_in);
      let x_0 = u32(x_in);
      let y_1 = min(y_0 + 1u, u.height - 1u);
      let x_1 = min(x_0 + 1u, u.width - 1u);
      let dy = y_in - f32(y_0);
      let dx = x_in - f32(x_0);
      corners = vec4<f32>((1.0 - dy) * (1.0 - dx) * ${pixel('y_0', 'x_0')}, (1.0 - dy) * dx * ${pixel('y_0', 'x_1')},
        dy * (1.0 - dx) * ${pixel('y_1', 'x_0')}, dy * dx * ${pixel('y_1', 'x_1')});
    }
    ${
      max
        ? `let sample = max(max(corners.x, corners.y), max(corners.z, corners.w));
          value = select(max(value, sample), sample, first);`
        : 'value += corners.x + corners.y + corners.z + corners.w;'
    }
    first = false;
  } }
  ${max ? 'if (rows.y - rows.x < samples_y || columns.y - columns.x < samples_x) { value = max(value, 0.0); }' : ''}
  y[i] = ${stored(storage, 1, max ? 'value' : 'value / max(f32(samples_x) * f32(samples_y), 1.0)')};`)}`;
  },
};

interface RoiAttributes {
  readonly max: boolean;
  readonly halfPixel: boolean;
  readonly height: number;
  readonly width: number;
  readonly samples: number;
  readonly scale: number;
}

const roiAlign: Kernel<RoiAttributes> = {
  op: 'RoiAlign',
  types: [
    ['float32', 'float16'],
    ['float32', 'float16'],
    ['int64', 'int32'],
  ],
  attributes: (a) => ({
    max: a.text('mode', 'avg') === 'max',
    halfPixel: a.text('coordinate_transformation_mode', 'half_pixel') === 'half_pixel',
    height: a.integer('output_height', 1),
    width: a.integer('output_width', 1),
    samples: a.integer('sampling_ratio', 0),
    scale: a.number('spatial_scale', 1),
  }),
  resolve(ctx, a) {
    const [x, rois, batches] = [ctx.input(0), ctx.input(1), ctx.input(2)];
    const y = ctx.output(0, [rois.dims[0], x.dims[1], a.height, a.width]);
    ctx.dispatch({
      shader: SHADER,
      spec: { max: a.max, halfPixel: a.halfPixel, storage: x.storage },
      inputs: { x, rois, batches },
      outputs: { y },
      uniforms: {
        count: y.size,
        channels: x.dims[1],
        height: x.dims[2],
        width: x.dims[3],
        out_h: a.height,
        out_w: a.width,
        samples: a.samples,
        scale: a.scale,
      },
      f32: ['scale'],
      workgroups: linearWorkgroups(y.size, ctx.device),
      iterations: Math.max(a.samples, 1) ** 2,
    });
  },
};

export default [roiAlign];
