// DeformConv: a convolution over images whose taps are moved by offsets, and weighted by a mask. One thread for each
// output.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { readWindow, slide, type WindowAttributes, windowUniforms } from '../../../../contract/window';

interface DeformSpec extends Spec {
  readonly bias: boolean;
  readonly mask: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<DeformSpec> = {
  name: 'deform_conv__any',
  wgsl: ({ bias, mask, storage }) =>
    linearMain(`  let pixels = u.out_h * u.out_w;
  let pixel = i % pixels;
  let channel = i / pixels % u.outputs;
  let image = i / pixels / u.outputs;
  let top = i32(pixel / u.out_w * u.stride_h) - i32(u.pad_top);
  let left = i32(pixel % u.out_w * u.stride_w) - i32(u.pad_left);
  let taps = u.kernel_h * u.kernel_w;
  let first = channel / u.group_outputs * u.depth;
  var sum = ${bias ? 'f32(bias[channel])' : '0.0'};
  for (var tap = 0u; tap < taps; tap++) {
    let row = f32(top + i32(tap / u.kernel_w * u.dilation_h));
    let column = f32(left + i32(tap % u.kernel_w * u.dilation_w));
    for (var c = 0u; c < u.depth; c++) {
      let source = first + c;
      let plane = (image * u.offset_groups + source / u.offset_channels) * taps + tap;
      let p = row + f32(offsets[plane * 2u * pixels + pixel]);
      let q = column + f32(offsets[(plane * 2u + 1u) * pixels + pixel]);
      let begin = vec2<f32>(floor(p), floor(q));
      let part = vec2<f32>(p, q) - begin;
      var value = 0.0;
      for (var corner = 0u; corner < 4u; corner++) {
        let step = vec2<f32>(f32(corner / 2u), f32(corner % 2u));
        let at = begin + step;
        let share = mix(vec2<f32>(1.0) - part, part, step);
        if (at.x >= 0.0 && at.x < f32(u.in_h) && at.y >= 0.0 && at.y < f32(u.in_w)) {
          value += share.x * share.y
            * f32(x[((image * u.channels + source) * u.in_h + u32(at.x)) * u.in_w + u32(at.y)]);
        }
      }
      ${mask ? 'value *= f32(mask[plane * pixels + pixel]);' : ''}
      sum += value * f32(w[(channel * u.depth + c) * taps + tap]);
    }
  }
  y[i] = ${stored(storage, 1, 'sum')};`),
};

const deformConv: Kernel<{ window: WindowAttributes; group: number; offsetGroup: number }> = {
  op: 'DeformConv',
  types: [['float32', 'float16']],
  attributes: (a) => ({
    window: readWindow(a),
    group: a.integer('group', 1),
    offsetGroup: a.integer('offset_group', 1),
  }),
  resolve(ctx, { window, group, offsetGroup }) {
    const [x, w, offsets, bias, mask] = [ctx.input(0), ctx.input(1), ctx.input(2), ctx.inputs[3], ctx.inputs[4]];
    if (x.dims.length !== 4 || w.dims.length !== 4 || x.dims[1] !== w.dims[1] * group)
      throw new KernelError(
        `DeformConv: weights [${w.dims}] in ${group} groups do not fit the channels of x [${x.dims}]`,
      );
    const geometry = slide(window, x.dims.slice(2), w.dims.slice(2));
    const planes = offsetGroup * geometry.kernel[0] * geometry.kernel[1];
    const wanted = [x.dims[0], 2 * planes, ...geometry.output];
    if (offsets.dims.join() !== wanted.join() || (mask && mask.size * 2 !== offsets.size)) {
      throw new KernelError(
        `DeformConv with offsets [${offsets.dims}]${mask ? ` and a mask [${mask.dims}]` : ''}, expected [${wanted}]`,
      );
    }
    const y = ctx.output(0, [x.dims[0], w.dims[0], ...geometry.output]);
    ctx.dispatch({
      shader: SHADER,
      spec: { bias: bias !== undefined, mask: mask !== undefined, storage: y.storage },
      inputs: { x, w, offsets, ...(bias && { bias }), ...(mask && { mask }) },
      outputs: { y },
      uniforms: {
        count: y.size,
        outputs: w.dims[0],
        group_outputs: w.dims[0] / group,
        depth: w.dims[1],
        channels: x.dims[1],
        offset_groups: offsetGroup,
        offset_channels: x.dims[1] / offsetGroup,
        ...windowUniforms(geometry),
      },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [deformConv];
