// Sliding windows of convolutions and pools, and of their transposes: attributes, pads, output sizes. The page computes
// them only here.
import type { Attributes } from './attributes';
import { KernelError } from './kernel';

/** The limit of each number of a window and of its padded image: shaders count places in 32 bits, pads below 0. */
const LARGEST = 2 ** 31 - 1;

/** The node's attributes; empty lists for absent ones. */
export interface WindowAttributes {
  readonly kernelShape: readonly number[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  readonly pads: readonly number[];
  readonly autoPad: string;
  readonly ceilMode: boolean;
}

/** A window over the spatial axes of an input of known sizes; one number for each axis everywhere. */
export interface Geometry {
  readonly input: readonly number[];
  readonly kernel: readonly number[];
  readonly strides: readonly number[];
  readonly dilations: readonly number[];
  /** Pads before and after. */
  readonly begins: readonly number[];
  readonly ends: readonly number[];
  readonly output: readonly number[];
}

export function readWindow(attributes: Attributes): WindowAttributes {
  return {
    kernelShape: attributes.integers('kernel_shape'),
    strides: attributes.integers('strides'),
    dilations: attributes.integers('dilations'),
    pads: attributes.integers('pads'),
    autoPad: attributes.text('auto_pad', 'NOTSET'),
    ceilMode: attributes.integer('ceil_mode', 0) !== 0,
  };
}

/**
 * The geometry of a convolution or a pool. Windows may be larger than the input: then there is no place, or one with
 * the elements that exist.
 */
export function slide(
  attributes: WindowAttributes,
  input: readonly number[],
  kernel: readonly number[],
  isPool = false,
): Geometry {
  const rank = input.length;
  const { strides, dilations } = steps(attributes, rank, kernel);
  const begins: number[] = [];
  const ends: number[] = [];
  const output = input.map((size, axis) => {
    const extent = (kernel[axis] - 1) * dilations[axis] + 1;
    const stride = strides[axis];
    if (isSame(attributes)) {
      const places = Math.ceil(size / stride);
      splitPads(attributes, Math.max(0, (places - 1) * stride + extent - size), begins, ends);
    } else {
      begins.push(attributes.autoPad === 'VALID' ? 0 : (attributes.pads[axis] ?? 0));
      ends.push(attributes.autoPad === 'VALID' ? 0 : (attributes.pads[axis + rank] ?? 0));
    }
    const span = size + begins[axis] + ends[axis] - extent;
    // A factor per channel may have become a window of 1, with an empty image.
    if (!isPool && extent === 1 && span === -1) return 0;
    const places = (attributes.ceilMode ? Math.ceil(span / stride) : Math.trunc(span / stride)) + 1;
    if (span < 0 && (!isPool || places < 0))
      throw new KernelError(
        `a window of ${extent} does not fit into ${size} elements with pads ${begins[axis]} and ${ends[axis]} ` +
          `(axis ${axis} of the spatial ones)`,
      );
    // With ceil_mode the last window must still begin inside the input or the pad before it.
    return attributes.ceilMode && (places - 1) * stride >= size + begins[axis] ? places - 1 : places;
  });
  return bounded({ input, kernel, strides, dilations, begins, ends, output });
}

const NONE = { outputShape: [], outputPadding: [] };

/** The geometry of a transposed convolution; `output` may be smaller or larger than the kernel's full reach. */
export function slideTransposed(
  attributes: WindowAttributes,
  input: readonly number[],
  kernel: readonly number[],
  { outputShape, outputPadding }: { outputShape: readonly number[]; outputPadding: readonly number[] } = NONE,
): Geometry {
  const rank = input.length;
  const { strides, dilations } = steps(attributes, rank, kernel);
  const begins: number[] = [];
  const ends: number[] = [];
  const output = input.map((size, axis) => {
    const extra = outputPadding[axis] ?? 0;
    const full = (size - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + extra;
    if (outputShape.length > 0) {
      const wanted = outputShape[outputShape.length - rank + axis];
      splitPads(attributes, Math.max(0, full - wanted), begins, ends);
      return wanted;
    }
    if (isSame(attributes)) {
      // A kernel smaller than its stride cannot reach size * stride; like onnxruntime we use its reach.
      splitPads(attributes, Math.max(0, full - size * strides[axis]), begins, ends);
      return Math.min(full, size * strides[axis]);
    }
    begins.push(attributes.autoPad === 'VALID' ? 0 : (attributes.pads[axis] ?? 0));
    ends.push(attributes.autoPad === 'VALID' ? 0 : (attributes.pads[axis + rank] ?? 0));
    return full - begins[axis] - ends[axis];
  });
  return bounded({ input, kernel, strides, dilations, begins, ends, output });
}

/** Throws for numbers with which a shader would read outside its tensors, or never end. */
function bounded(geometry: Geometry): Geometry {
  const { input, kernel, strides, dilations, begins, ends } = geometry;
  const reached = input.flatMap((size, axis) => [
    strides[axis],
    dilations[axis],
    Math.abs(begins[axis]),
    Math.abs(ends[axis]),
    size + begins[axis] + ends[axis],
    (kernel[axis] - 1) * dilations[axis] + 1,
  ]);
  if (reached.every((number) => number <= LARGEST)) return geometry;
  throw new KernelError(
    `a window of [${kernel}] with strides [${strides}], dilations [${dilations}] and pads [${begins}] and [${ends}] ` +
      `reaches beyond ${LARGEST} elements of an axis`,
  );
}

function steps({ strides, dilations, kernelShape }: WindowAttributes, rank: number, kernel: readonly number[]) {
  if (kernelShape.length > 0 && kernelShape.some((size, axis) => size !== kernel[axis])) {
    throw new KernelError(`kernel_shape is [${kernelShape}], but the weights are [${kernel}]`);
  }
  if (kernel.length !== rank) throw new KernelError(`a window of [${kernel}] cannot slide over ${rank} spatial axes`);
  const ones = new Array<number>(rank).fill(1);
  return { strides: strides.length > 0 ? strides : ones, dilations: dilations.length > 0 ? dilations : ones };
}

function isSame({ autoPad }: WindowAttributes): boolean {
  return autoPad === 'SAME_UPPER' || autoPad === 'SAME_LOWER';
}

/**
 * An odd total puts the extra one at the end with SAME_UPPER, otherwise at the beginning: even with an output_shape and
 * no auto_pad.
 */
function splitPads({ autoPad }: WindowAttributes, total: number, begins: number[], ends: number[]): void {
  const small = Math.floor(total / 2);
  begins.push(autoPad === 'SAME_UPPER' ? small : total - small);
  ends.push(autoPad === 'SAME_UPPER' ? total - small : small);
}

/** The uniforms of a window over two axes. */
export function windowUniforms({ input, kernel, strides, dilations, begins, output }: Geometry) {
  return {
    in_h: input[0],
    in_w: input[1],
    out_h: output[0],
    out_w: output[1],
    kernel_h: kernel[0],
    kernel_w: kernel[1],
    stride_h: strides[0],
    stride_w: strides[1],
    dilation_h: dilations[0],
    dilation_w: dilations[1],
    pad_top: begins[0],
    pad_left: begins[1],
  };
}
