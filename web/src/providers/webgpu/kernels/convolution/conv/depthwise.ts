// A convolution with a window for each channel (NHWC). A thread computes neighboring pixels of a row in 4 channels, so
// that pixels and weights are loaded once for several uses.
import type { Context, Shader, Spec, StorageType } from '../../../../../contract/kernel';
import { ended, EPILOGUE_F32, epilogueText, epilogueUniforms, readsResidual, shared } from '../../../wgsl/epilogue';
import type { Instruction } from '../../../wgsl/program';
import { inLanes, laneType, stored } from '../../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../../wgsl/linear';
import { type Geometry, windowUniforms } from '../../../../../contract/window';
import type { ChannelsLast } from '../operands';
import { repeated } from '../../../wgsl/repeated';

interface DepthwiseSpec extends Spec {
  readonly lanes: 1 | 4;
  readonly pixels: number;
  /** Width of the window if it is unrolled (with dilation 1 and this stride along the row), otherwise 0. */
  readonly width: number;
  readonly stride: number;
  readonly bias: boolean;
  /** x or the residual is in y, which must not be bound twice. */
  readonly xInPlace?: boolean;
  readonly inPlace?: boolean;
  /** As in a product's spec (see product/spec.ts). */
  readonly compact?: boolean;
  readonly epilogue?: readonly Instruction[];
  readonly storage: StorageType;
}

/** w is [kernel_h, kernel_w, 1, channels]. */
export function depthwise(
  ctx: Context,
  { x, w, y, bias, residual, epilogue: given, geometry, columns }: ChannelsLast,
): void {
  const { software, slowCompiler } = ctx.device;
  const epilogue = slowCompiler ? shared(given) : given;
  const channels = columns.x.count;
  const { x: from, y: to, residual: added = to } = columns;
  const lanes = [channels, from.pitch, from.first, to.pitch, to.first, added.pitch, added.first].every(
    (number) => number % 4 === 0,
  )
    ? 4
    : 1;
  const inPlace = residual?.id === y.id;
  const xInPlace = x.id === y.id;
  const [height, width] = geometry.output;
  const pixels = software
    ? longStrip(geometry, slowCompiler)
    : shortStrip((x.dims[0] * height * width * channels) / lanes);
  const unrolled = geometry.dilations[1] === 1 && geometry.kernel[1] <= 7 && geometry.strides[1] <= 2;
  const spec: DepthwiseSpec = {
    lanes,
    pixels,
    width: unrolled ? geometry.kernel[1] : 0,
    stride: unrolled ? geometry.strides[1] : 0,
    ...(slowCompiler ? { bias: true, compact: true } : { bias: bias !== undefined }),
    epilogue: epilogue?.instructions,
    storage: y.storage,
    ...(inPlace && { inPlace }),
    ...(xInPlace && { xInPlace }),
  };
  const strips = Math.ceil(width / pixels);
  const count = (channels / lanes) * strips * height * x.dims[0];
  ctx.dispatch({
    shader: {
      name: `conv_depthwise__${software ? 'sw' : 'hw'}_${pixels}x${lanes}`,
      wgsl: text,
    } satisfies Shader<DepthwiseSpec>,
    spec,
    inputs: {
      ...(!xInPlace && { x: inLanes(x, lanes) }),
      w: inLanes(w, lanes),
      ...(spec.bias && { bias: inLanes(bias ?? w, lanes) }),
      ...(readsResidual(spec.epilogue) && !inPlace && { residual: inLanes(residual ?? w, lanes) }),
    },
    outputs: { y: inLanes(y, lanes) },
    inPlace: added.pitch === to.pitch && added.first === to.first ? { residual: 'y' } : undefined,
    uniforms: {
      count,
      channels: channels / lanes,
      pitch: from.pitch / lanes,
      first: from.first / lanes,
      y_pitch: to.pitch / lanes,
      y_first: to.first / lanes,
      residual_pitch: added.pitch / lanes,
      residual_first: added.first / lanes,
      strips,
      ...windowUniforms(geometry),
      ...epilogueUniforms(epilogue),
      ...(slowCompiler && { has_bias: bias ? 1 : 0, has_residual: residual ? 1 : 0, pixels }),
    },
    f32: EPILOGUE_F32,
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

/** A GPU needs many threads more than few loads. */
function shortStrip(outputs: number): number {
  return outputs > 1 << 18 ? 4 : outputs > 1 << 16 ? 2 : 1;
}

/** The strip for which a row of the output needs the fewest loads; long ones take twice as long to compile. */
function longStrip({ output, kernel, strides }: Geometry, slowCompiler: boolean): number {
  const loads = (pixels: number) => Math.ceil(output[1] / pixels) * ((pixels - 1) * strides[1] + 2 * kernel[1]);
  return !slowCompiler && loads(8) < loads(4) ? 8 : 4;
}

function text({
  lanes,
  pixels,
  width,
  stride,
  bias,
  inPlace,
  xInPlace,
  compact,
  epilogue,
  storage,
}: DepthwiseSpec): string {
  const ownResidual = (place: string) =>
    `${inPlace ? 'y' : 'residual'}[(${place}) * u.residual_pitch + u.residual_first + c]`;
  const type = laneType('f32', lanes);
  const pixel = (id: number, x: string) => `let x_${id} = u32(${x});
    let v_${id} = select(${type}(0.0),
      ${type}(${xInPlace ? 'y' : 'x'}[(row + select(0u, x_${id}, x_${id} < u.in_w)) * u.pitch + c_in]),
      x_${id} < u.in_w);`;
  const weight = (id: number, kx: string) => `let w_${id} = ${type}(w[(ky * u.kernel_w + ${kx}) * u.channels + c]);`;
  const unrolled = `
    ${repeated((pixels - 1) * stride + width, (i) => pixel(i, `left + ${i}`))}
    ${repeated(width, (i) => weight(i, `${i}u`))}
    ${repeated(
      pixels,
      (p) => `sum_${p} += ${Array.from({ length: width }, (_, i) => `v_${p * stride + i} * w_${i}`).join(' + ')};`,
    )}`;
  const anyWidth = `
    for (var kx = 0u; kx < u.kernel_w; kx++) {
    ${weight(0, 'kx')}
    ${repeated(
      pixels,
      (p) => `${pixel(p, `left + i32(kx * u.dilation_w + ${p}u * u.stride_w)`)} sum_${p} += v_${p} * w_0;`,
    )}
    }`;
  return `${epilogueText(epilogue, lanes)}${linearMain(`  let c = i % u.channels;
  let c_in = u.first + c;
  let out_x = i / u.channels % u.strips * ${pixels}u;
  let line = i / u.channels / u.strips;
  let out_y = line % u.out_h;
  let image = line / u.out_h;
  let left = i32(out_x * u.stride_w) - i32(u.pad_left);
  ${compact ? `var own_bias = ${type}(0.0); if (u.has_bias != 0u) { own_bias = ${type}(bias[c]); }\n  ` : ''}${repeated(
    pixels,
    (p) => `var sum_${p} = ${compact ? 'own_bias' : bias ? `${type}(bias[c])` : `${type}(0.0)`};`,
  )}
  for (var ky = 0u; ky < u.kernel_h; ky++) {
    let in_y = u32(i32(out_y * u.stride_h + ky * u.dilation_h) - i32(u.pad_top));
    if (in_y < u.in_h) {
    let row = (image * u.in_h + in_y) * u.in_w;${width > 0 ? unrolled : anyWidth}
    }
  }
  let at = line * u.out_w + out_x;
  ${
    compact
      ? storeInLoop(
          type,
          pixels,
          ownResidual('at + p'),
          stored(storage, lanes, ended(epilogue, 'sums[p]', 'own_residual')),
        )
      : repeated(pixels, (p) => {
          const value = stored(storage, lanes, ended(epilogue, `sum_${p}`, `${type}(${ownResidual(`at + ${p}u`)})`));
          return `if (out_x + ${p}u < u.out_w) { y[(at + ${p}u) * u.y_pitch + u.y_first + c] = ${value}; }`;
        })
  }`)}`;
}

/** For fast compilation (see product/software.ts). */
function storeInLoop(type: string, pixels: number, residual: string, value: string): string {
  return `var sums = array<${type}, ${pixels}>(${Array.from({ length: pixels }, (_, p) => `sum_${p}`).join(', ')});
  for (var p = 0u; p < u.pixels; p++) {
    if (out_x + p < u.out_w) {
      var own_residual = ${type}(0.0);
      if (u.has_residual != 0u) { own_residual = ${type}(${residual}); }
      y[(at + p) * u.y_pitch + u.y_first + c] = ${value};
    }
  }`;
}
