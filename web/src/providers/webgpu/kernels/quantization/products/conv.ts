// ConvInteger and QLinearConv over any number of axes, channels second. A thread computes 4 consecutive outputs of one
// channel, or of 4 channels of a group, so that each load serves several.
import { DType } from '../../../../../schema';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../../contract/kernel';
import type { Attributes } from '../../../../../contract/attributes';
import { elementwise, elementwiseShader } from '../../../wgsl/elementwise';
import { inLanes, laneType } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { sizeOf } from '../../../../../contract/shape';
import { readWindow, slide, type WindowAttributes } from '../../../../../contract/window';
import {
  byteRange,
  type Factor,
  factorInputs,
  factorOf,
  factorUniforms,
  requantized,
  scaleAt,
  zeroPoint,
} from './requantize';
import { repeated } from '../../../wgsl/repeated';

interface ConvSpec extends Spec {
  readonly axes: number;
  /** Outputs of a channel per thread. */
  readonly lanes: 1 | 4;
  readonly channels: 1 | 4;
  /** True if the outputs of a channel are a multiple of that. */
  readonly whole: boolean;
  readonly xZero: boolean;
  readonly wZero: boolean;
  readonly bias: boolean;
  readonly scaled: boolean;
  readonly storage: StorageType;
}

const SHADER: Shader<ConvSpec> = {
  name: 'conv_quantized__any',
  wgsl({ axes, lanes, channels, whole, xZero, wZero, bias, scaled, storage }) {
    const all = Array.from({ length: axes }, (_, axis) => axis);
    const pixels = lanes === 4 ? [0, 1, 2, 3] : [0];
    const type = laneType('i32', lanes);
    const out = (p: number) =>
      [
        `var rest_${p} = min(place * ${lanes}u + ${p}u, u.plane - 1u);`,
        ...[...all]
          .reverse()
          .map(
            (axis) => `let out_${p}_${axis} = rest_${p} % u.output_${axis}; rest_${p} = rest_${p} / u.output_${axis};`,
          ),
      ].join(' ');
    const open = all.map((axis) => `for (var k_${axis} = 0u; k_${axis} < u.kernel_${axis}; k_${axis}++) {`);
    const inside = (p: number) =>
      [
        ...all.map(
          (axis) =>
            `let in_${p}_${axis} = u32(i32(out_${p}_${axis} * u.stride_${axis} + k_${axis} * u.dilation_${axis})
                - i32(u.pad_${axis}));`,
        ),
        `let is_${p} = ${all.map((axis) => `in_${p}_${axis} < u.input_${axis}`).join(' && ')};`,
        `let at_${p} = select(0u, ${all.reduce(
          (text, axis) => `(${text}) * u.input_${axis} + in_${p}_${axis}`,
          '0u',
        )}, is_${p});`,
      ].join(' ');
    const tap = all.reduce((text, axis) => `(${text}) * u.kernel_${axis} + k_${axis}`, '0u');
    const result = (c: number) =>
      scaled
        ? requantized(
            storage,
            `sum_${c}`,
            scaleAt('scale', '0u', `channel_${c}`),
            zeroPoint(true, 'y_zero', '0u', `channel_${c}`),
            lanes,
          )
        : `sum_${c}`;
    const store = (c: number) => {
      const at = `(image * u.outputs + channel_${c})`;
      if (whole) return `y[${at} * u.places + place] = ${result(c)};`;
      return `{ let value = ${result(c)}; for (var p = 0u; p < 4u && place * 4u + p < u.plane; p++) {
          y[${at} * u.plane + place * 4u + p] = value[p]; } }`;
    };
    return linearMain(`  let place = i % u.places;
  let channel_0 = i / u.places % (u.outputs / ${channels}u) * ${channels}u;
  let image = i / u.places / (u.outputs / ${channels}u);
  ${repeated(channels - 1, (c) => `let channel_${c + 1} = channel_0 + ${c + 1}u;`)}
  ${pixels.map(out).join('\n  ')}
  let first = image * u.channels + channel_0 / u.group_outputs * u.depth;
  let x_less = ${zeroPoint(xZero, 'x_zero', '0u', 'channel_0')};
  ${repeated(
    channels,
    (c) =>
      `let w_less_${c} = ${zeroPoint(wZero, 'w_zero', '0u', `channel_${c}`)};
        var sum_${c} = ${type}(${bias ? `bias[channel_${c}]` : '0'});`,
  )}
  ${open.join('\n  ')}
  ${pixels.map(inside).join('\n  ')}
  let tap = ${tap};
  for (var c = 0u; c < u.depth; c++) {
    let line = (first + c) * u.input_plane;
    let values = ${type}(${pixels.map((p) => `select(0, i32(x[line + at_${p}]) - x_less, is_${p})`).join(', ')});
    ${repeated(
      channels,
      (c) => `sum_${c} += values * (i32(w[(channel_${c} * u.depth + c) * u.taps + tap]) - w_less_${c});`,
    )}
  }
  ${'}'.repeat(axes)}
  ${repeated(channels, store)}`);
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

function convolve(
  ctx: Context,
  { window, group }: ConvAttributes,
  { x, w, xZero, wZero, bias, scales }: Operands,
): void {
  if (x.dims.length < 3 || w.dims.length !== x.dims.length || w.dims[1] * group !== x.dims[1])
    throw new KernelError(`weights [${w.dims}] in ${group} groups do not fit the channels of x [${x.dims}]`);
  const geometry = slide(window, x.dims.slice(2), w.dims.slice(2));
  const outputs = w.dims[0];
  const dtype = scales?.yZero.dtype ?? DType.int32;
  const y = ctx.output(0, [x.dims[0], outputs, ...geometry.output], dtype);
  // Joins three scales into one number per channel: bound separately they would be more tensors than every device
  // allows.
  const scale = scales && ctx.temp([outputs], DType.float32);
  if (scale) elementwise(ctx, SCALES, { x: scales.x, w: scales.w, to: scales.y }, scale);
  const factors: Record<string, Factor> = {
    x_zero: factorOf(xZero, 'column', 1),
    w_zero: factorOf(wZero, 'column', outputs),
  };
  if (scales) {
    factors.scale = factorOf(scale, 'column', outputs);
    factors.y_zero = factorOf(scales.yZero, 'column', outputs);
  }
  const [least, most] = byteRange(dtype);
  const plane = sizeOf(geometry.output);
  const lanes = plane % 4 !== 0 && ctx.device.ownElement ? 1 : 4;
  const places = Math.ceil(plane / lanes);
  const whole = plane % lanes === 0;
  const channels = (outputs / group) % 4 === 0 && !ctx.device.ownElement ? 4 : 1;
  const count = x.dims[0] * (outputs / channels) * places;
  ctx.dispatch({
    shader: SHADER,
    spec: {
      axes: geometry.kernel.length,
      lanes,
      channels,
      whole,
      xZero: xZero !== undefined,
      wZero: wZero !== undefined,
      bias: bias !== undefined,
      scaled: scales !== undefined,
      storage: y.storage,
    },
    inputs: { x, w, ...(bias && { bias }), ...factorInputs(factors) },
    outputs: { y: whole ? inLanes(y, lanes) : y },
    uniforms: {
      count,
      places,
      plane,
      input_plane: sizeOf(geometry.input),
      taps: sizeOf(geometry.kernel),
      outputs,
      group_outputs: outputs / group,
      depth: w.dims[1],
      channels: x.dims[1],
      input: geometry.input,
      output: geometry.output,
      kernel: geometry.kernel,
      stride: geometry.strides,
      dilation: geometry.dilations,
      pad: geometry.begins,
      ...factorUniforms(factors),
      ...(scales && { least, most }),
    },
    i32: ['least', 'most'],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

const BYTES: readonly DTypeName[] = ['int8', 'uint8'];
const FLOATS: readonly DTypeName[] = ['float32'];

export const convInteger: Kernel<ConvAttributes> = {
  op: 'ConvInteger',
  types: [BYTES],
  attributes,
  resolve: (ctx, a) =>
    convolve(ctx, a, { x: ctx.input(0), w: ctx.input(1), xZero: ctx.inputs[2], wZero: ctx.inputs[3] }),
};

/** x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias */
export const qLinearConv: Kernel<ConvAttributes> = {
  op: 'QLinearConv',
  types: [BYTES, FLOATS, BYTES, BYTES, FLOATS, BYTES, FLOATS, BYTES, ['int32']],
  attributes,
  resolve: (ctx, a) =>
    convolve(ctx, a, {
      x: ctx.input(0),
      w: ctx.input(3),
      xZero: ctx.input(2),
      wZero: ctx.input(5),
      bias: ctx.inputs[8],
      scales: { x: ctx.input(1), w: ctx.input(4), y: ctx.input(6), yZero: ctx.input(7) },
    }),
};
