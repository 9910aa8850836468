// ConvInteger and QLinearConv over any number of axes, channels second: one thread for each output.
import { DType } from '../../schema';
import { type Context, type DTypeName, type Kernel, KernelError, type Shader, type Spec, type StorageType, type Tensor } from '../../jsep/kernel';
import type { Attributes } from '../../jsep/attributes';
import { elementwise, elementwiseShader } from '../../wgsl/elementwise';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { readWindow, slide, type WindowAttributes } from '../_conv_geometry';
import { byteRange, type Factor, factorInputs, factorOf, factorUniforms, requantized, scaleAt, zeroPoint } from './requantize';

interface ConvSpec extends Spec {
  readonly axes: number;
  readonly xZero: boolean;
  readonly wZero: boolean;
  readonly bias: boolean;
  readonly scaled: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<ConvSpec> = {
  name: 'conv_quantized__any',
  wgsl({ axes, xZero, wZero, bias, scaled, storage }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const out = [...all].reverse().map((axis) => `let out_${axis} = rest % u.output_${axis}; rest = rest / u.output_${axis};`);
    const open = all.map((axis) => `for (var k_${axis} = 0u; k_${axis} < u.kernel_${axis}; k_${axis}++) {
    let in_${axis} = u32(i32(out_${axis} * u.stride_${axis} + k_${axis} * u.dilation_${axis}) - i32(u.pad_${axis}));
    if (in_${axis} >= u.input_${axis}) { continue; }`);
    const place = (first: string, size: string, index: string) => all.reduce((text, axis) => `(${text}) * u.${size}_${axis} + ${index}_${axis}`, first);
    const scale = scaleAt('scale', '0u', 'channel');
    return linearMain(`  var rest = i;
  ${out.join('\n  ')}
  let channel = rest % u.outputs;
  let image = rest / u.outputs;
  let first = channel / u.group_outputs * u.depth;
  let x_less = ${zeroPoint(xZero, 'x_zero', '0u', 'channel')};
  let w_less = ${zeroPoint(wZero, 'w_zero', '0u', 'channel')};
  var sum = ${bias ? 'bias[channel]' : '0i'};
  for (var c = 0u; c < u.depth; c++) {
  ${open.join('\n  ')}
    sum += (i32(x[${place('image * u.channels + first + c', 'input', 'in')}]) - x_less) * (i32(w[${place('channel * u.depth + c', 'kernel', 'k')}]) - w_less);
  ${'}'.repeat(axes)}
  }
  y[i] = ${scaled ? requantized(storage, 'sum', scale, zeroPoint(true, 'y_zero', '0u', 'channel')) : 'sum'};`);
  },
};

const SCALES = elementwiseShader('quantized_scales', () => 'fn apply(x: F, w: F, to: F) -> R { return x * w / to; }');

interface ConvAttributes {
  readonly window: WindowAttributes;
  readonly group: number;
}
const attributes = (a: Attributes): ConvAttributes => ({ window: readWindow(a), group: a.integer('group', 1) });

interface Operands {
  readonly x: Tensor;
  readonly w: Tensor;
  readonly xZero?: Tensor;
  readonly wZero?: Tensor;
  readonly bias?: Tensor;
  readonly scales?: { readonly x: Tensor; readonly w: Tensor; readonly y: Tensor; readonly yZero: Tensor };
}

function convolve(ctx: Context, { window, group }: ConvAttributes, { x, w, xZero, wZero, bias, scales }: Operands): void {
  if (x.dims.length < 3 || w.dims.length !== x.dims.length || w.dims[1] * group !== x.dims[1]) throw new KernelError(`a quantised Conv of [${x.dims}] with weights [${w.dims}] in ${group} groups`);
  const geometry = slide(window, x.dims.slice(2), w.dims.slice(2));
  const outputs = w.dims[0];
  const dtype = scales?.yZero.dtype ?? DType.int32;
  const y = ctx.output(0, [x.dims[0], outputs, ...geometry.output], dtype);
  // Three scales are one number for each channel: bound apart they are more tensors than every device allows.
  const scale = scales && ctx.temp([outputs], DType.float32);
  if (scale) elementwise(ctx, SCALES, { x: scales.x, w: scales.w, to: scales.y }, scale);
  const factors: Record<string, Factor> = { x_zero: factorOf(xZero, 'column', 1), w_zero: factorOf(wZero, 'column', outputs) };
  if (scales) {
    factors.scale = factorOf(scale, 'column', outputs);
    factors.y_zero = factorOf(scales.yZero, 'column', outputs);
  }
  const [least, most] = byteRange(dtype);
  ctx.dispatch({
    shader: SHADER,
    spec: { axes: geometry.kernel.length, xZero: xZero !== undefined, wZero: wZero !== undefined, bias: bias !== undefined, scaled: scales !== undefined, storage: y.storage },
    inputs: { x, w, ...(bias && { bias }), ...factorInputs(factors) }, outputs: { y },
    uniforms: {
      count: y.size, outputs, group_outputs: outputs / group, depth: w.dims[1], channels: x.dims[1],
      input: geometry.input, output: geometry.output, kernel: geometry.kernel, stride: geometry.strides, dilation: geometry.dilations, pad: geometry.begins,
      ...factorUniforms(factors), ...(scales && { least, most }),
    },
    i32: ['least', 'most'], workgroups: linearWorkgroups(y.size, ctx.device),
  });
}

const BYTES: readonly DTypeName[] = ['int8', 'uint8'];
const FLOATS: readonly DTypeName[] = ['float32'];

export const convInteger: Kernel<ConvAttributes> = {
  op: 'ConvInteger', types: [BYTES], attributes,
  resolve: (ctx, a) => convolve(ctx, a, { x: ctx.input(0), w: ctx.input(1), xZero: ctx.inputs[2], wZero: ctx.inputs[3] }),
};

/** x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias */
export const qLinearConv: Kernel<ConvAttributes> = {
  op: 'QLinearConv', types: [BYTES, FLOATS, BYTES, BYTES, FLOATS, BYTES, FLOATS, BYTES, ['int32']], attributes,
  resolve: (ctx, a) => convolve(ctx, a, {
    x: ctx.input(0), w: ctx.input(3), xZero: ctx.input(2), wZero: ctx.input(5), bias: ctx.inputs[8],
    scales: { x: ctx.input(1), w: ctx.input(4), y: ctx.input(6), yZero: ctx.input(7) },
  }),
};
