// Convolution and transposed convolution over any number of axes, channels second: one thread for each output, for
// ranks (and dilations) without a faster kernel.
import type { Context, Shader, Spec, StorageType } from '../../../../../contract/kernel';
import { ended, EPILOGUE_F32, epilogueText, epilogueUniforms } from '../../../wgsl/epilogue';
import type { Instruction } from '../../../wgsl/program';
import { stored } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import type { ConvolutionOperands } from '../operands';

interface DirectSpec extends Spec {
  readonly transposed: boolean;
  readonly axes: number;
  readonly bias: boolean;
  readonly epilogue?: readonly Instruction[];
  readonly storage: StorageType;
}

/** x is [images, channels, …], w [outputs, channels / group, …] or transposed [channels, outputs / group, …]. */
export interface Direct extends ConvolutionOperands {
  readonly transposed: boolean;
  readonly group: number;
}

export function convolveDirectly(
  ctx: Context,
  { x, w, y, bias, residual, epilogue, transposed, group, geometry }: Direct,
): void {
  const spec: DirectSpec = {
    transposed,
    axes: geometry.kernel.length,
    bias: bias !== undefined,
    epilogue: epilogue?.instructions,
    storage: y.storage,
  };
  const outputs = y.dims[1];
  ctx.dispatch({
    shader: { ...SHADER, name: `${transposed ? 'conv_transpose' : 'conv'}__any_direct` },
    spec,
    inputs: { x, w, ...(bias && { bias }), ...(residual && { residual }) },
    outputs: { y },
    inPlace: { residual: 'y' },
    uniforms: {
      count: y.size,
      outputs,
      group_outputs: outputs / group,
      depth: x.dims[1] / group,
      channels: x.dims[1],
      input: geometry.input,
      output: geometry.output,
      kernel: geometry.kernel,
      stride: geometry.strides,
      dilation: geometry.dilations,
      pad: geometry.begins,
      ...epilogueUniforms(epilogue),
    },
    f32: EPILOGUE_F32,
    workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const SHADER: Shader<DirectSpec> = {
  name: 'conv__any_direct',
  wgsl({ transposed, axes, bias, epilogue, storage }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const outIndex = [...all]
      .reverse()
      .map((axis) => `let out_${axis} = rest % u.output_${axis}; rest = rest / u.output_${axis};`);
    const tap = transposed ? tapTransposed : tapStraight;
    const open = all.map(
      (axis) => `for (var k_${axis} = 0u; k_${axis} < u.kernel_${axis}; k_${axis}++) {\n    ${tap(axis)}`,
    );
    const weights = transposed ? '(first + c) * u.group_outputs + output % u.group_outputs' : 'output * u.depth + c';
    const place = (first: string, size: string, index: string) =>
      all.reduce((text, axis) => `(${text}) * u.${size}_${axis} + ${index}_${axis}`, first);
    return `${epilogueText(epilogue, 1)}${linearMain(`  var rest = i;
  ${outIndex.join('\n  ')}
  let output = rest % u.outputs;
  let image = rest / u.outputs;
  let first = output / u.group_outputs * u.depth;
  var sum = ${bias ? 'f32(bias[output])' : '0.0'};
  for (var c = 0u; c < u.depth; c++) {
  ${open.join('\n  ')}
    sum += f32(x[${place('image * u.channels + first + c', 'input', 'in')}]) * f32(w[${place(weights, 'kernel', 'k')}]);
  ${'}'.repeat(axes)}
  }
  y[i] = ${stored(storage, 1, ended(epilogue, 'sum', 'f32(residual[i])'))};`)}`;
  },
};

/** Statements that declare in_AXIS, or continue with the next tap. */
function tapStraight(axis: number): string {
  return `let in_${axis} = u32(i32(out_${axis} * u.stride_${axis} + k_${axis} * u.dilation_${axis})
      - i32(u.pad_${axis}));
    if (in_${axis} >= u.input_${axis}) { continue; }`;
}

/** An input element reaches out = in * stride + k * dilation - pad. */
function tapTransposed(axis: number): string {
  return `let from_${axis} = out_${axis} + u.pad_${axis};
    let in_${axis} = (from_${axis} - k_${axis} * u.dilation_${axis}) / u.stride_${axis};
    if (from_${axis} < k_${axis} * u.dilation_${axis} || in_${axis} >= u.input_${axis}
      || in_${axis} * u.stride_${axis} + k_${axis} * u.dilation_${axis} != from_${axis}) { continue; }`;
}
