// Transposed convolution over any number of axes and with dilations, channels second: one thread for each output asks every tap.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { activated, type Activation, ACTIVATION_F32, type ActivationKind, activationText, activationUniforms } from '../../wgsl/activation';
import { stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import type { Geometry } from '../_conv_geometry';

interface DirectSpec extends Spec {
  readonly axes: number;
  readonly bias: boolean;
  readonly residual: boolean;
  readonly activation?: ActivationKind;
  readonly storage: StorageType;
}

export interface Direct {
  /** [images, channels, …] */
  readonly x: Tensor;
  /** [channels, outputs / group, …] */
  readonly w: Tensor;
  readonly y: Tensor;
  readonly bias?: Tensor;
  readonly residual?: Tensor;
  readonly activation?: Activation;
  readonly group: number;
  readonly geometry: Geometry;
}

export function scatterDirectly(ctx: Context, { x, w, y, bias, residual, activation, group, geometry }: Direct): void {
  const spec: DirectSpec = {
    axes: geometry.kernel.length, bias: bias !== undefined, residual: residual !== undefined, activation: activation?.kind, storage: y.storage,
  };
  ctx.dispatch({
    shader: SHADER, spec,
    inputs: { x, w, ...(bias && { bias }), ...(residual && { residual }) }, outputs: { y },
    uniforms: {
      count: y.size, outputs: y.dims[1], group_outputs: w.dims[1], depth: w.dims[0] / group, channels: x.dims[1],
      input: geometry.input, output: geometry.output, kernel: geometry.kernel, stride: geometry.strides, dilation: geometry.dilations, pad: geometry.begins,
      ...activationUniforms(activation),
    },
    f32: ACTIVATION_F32,
    workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const SHADER: Shader<DirectSpec> = {
  name: 'conv_transpose__any_direct',
  wgsl({ axes, bias, residual, activation, storage }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const outIndex = [...all].reverse().map((axis) => `let out_${axis} = rest % u.output_${axis}; rest = rest / u.output_${axis};`);
    // An input element reaches out = in * stride + k * dilation - pad.
    const open = all.map((axis) => `for (var k_${axis} = 0u; k_${axis} < u.kernel_${axis}; k_${axis}++) {
    let from_${axis} = out_${axis} + u.pad_${axis};
    let in_${axis} = (from_${axis} - k_${axis} * u.dilation_${axis}) / u.stride_${axis};
    if (from_${axis} < k_${axis} * u.dilation_${axis} || in_${axis} >= u.input_${axis}
      || in_${axis} * u.stride_${axis} + k_${axis} * u.dilation_${axis} != from_${axis}) { continue; }`);
    const place = (first: string, size: string, index: string) => all.reduce((text, axis) => `(${text}) * u.${size}_${axis} + ${index}_${axis}`, first);
    return `${activationText(activation, 1)}${linearMain(`  var rest = i;
  ${outIndex.join('\n  ')}
  let output = rest % u.outputs;
  let image = rest / u.outputs;
  let first = output / u.group_outputs * u.depth;
  var sum = ${bias ? 'f32(bias[output])' : '0.0'};
  for (var c = 0u; c < u.depth; c++) {
  ${open.join('\n  ')}
    sum += f32(x[${place('image * u.channels + first + c', 'input', 'in')}])
      * f32(w[${place('(first + c) * u.group_outputs + output % u.group_outputs', 'kernel', 'k')}]);
  ${'}'.repeat(axes)}
  }
  y[i] = ${stored(storage, 1, activated(activation, 'sum', residual ? 'f32(residual[i])' : undefined))};`)}`;
  },
};
