// Adds operators to a graph, and tracks the operands from which each is made.
import { sizeOf, stridesOf } from '../../contract/shape';
import {
  bytesOf,
  type MlBuilder,
  type MlContext,
  type MlDataType,
  type MlDescriptor,
  type MlOperand,
  newBuilder,
} from './ml';

/** An operand, or a number of the same type as the first operand next to it. */
export type Term = MlOperand | number;

/** The scale and zero point of a quantized operand. */
export type Steps = readonly [scale: MlOperand, zero: MlOperand];

/** Methods that only move elements of their first operand. */
const MOVES: ReadonlySet<string> = new Set('expand gather maxPool2d reshape slice split transpose'.split(' '));

/**
 * Methods for which Chromium computes wrongly on integers: between dequantizeLinear and quantizeLinear with different
 * scales, or with zero points of weights, it ignores the difference.
 */
const OWN_STEPS: ReadonlySet<string> = new Set(
  'averagePool2d conv2d convTranspose2d gemm maxPool2d reduceMax reduceMin slice transpose'.split(' '),
);

export class Formula {
  readonly builder: MlBuilder;
  private readonly sources = new Map<unknown, readonly unknown[]>();
  private readonly contents = new Map<MlOperand, Uint8Array>();
  /** Constants under another shape. */
  private readonly views = new Map<unknown, Uint8Array>();
  private readonly steps = new Map<MlOperand, Steps>();
  private readonly anySteps = new Set<unknown>();

  constructor(context: MlContext) {
    this.builder = newBuilder(context);
  }

  /** An operator with WebNN's own arguments. */
  plain(name: string, ...given: readonly unknown[]): MlOperand {
    return this.several(name, ...given)[0];
  }

  /**
   * An operator with several results. The browser moves integers without conversion only if quantizeLinear with their
   * scale follows the operator.
   */
  several(name: string, ...given: readonly unknown[]): readonly MlOperand[] {
    const turned = name === 'transpose' && this.turned(...(given as Parameters<Formula['turned']>));
    if (turned) return [turned];
    if (!MOVES.has(name)) return this.made(name, given);
    const [x, ...others] = given as [MlOperand];
    return this.moved(x, (one) => this.made(name, [one, ...others]));
  }

  /** Moves elements of x, as floats for the same integers. */
  moved(x: MlOperand, of: (x: MlOperand) => readonly MlOperand[]): readonly MlOperand[] {
    const steps = this.steps.get(x);
    return steps ? of(this.dequantized(x, steps)).map((y) => this.quantized(y, steps)) : of(x);
  }

  private made(name: string, read: readonly unknown[]): readonly MlOperand[] {
    const given = OWN_STEPS.has(name) ? read.map((x) => (this.anySteps.has(x) ? this.apart(x) : x)) : read;
    const made = [this.builder[name](...(given as never[]))].flat() as MlOperand[];
    for (const operand of made) this.sources.set(operand, given);
    const bytes = name === 'reshape' && (this.contents.get(given[0] as MlOperand) ?? this.views.get(given[0]));
    if (bytes) this.views.set(made[0], bytes);
    return made;
  }

  /** A transposed constant: if it is reshaped later, Chromium would use the axes before the transpose. */
  private turned(x: MlOperand, { permutation }: { readonly permutation: readonly number[] }): MlOperand | undefined {
    const bytes = this.contents.get(x) ?? this.views.get(x);
    const width = bytes && bytes.byteLength / sizeOf(x.shape);
    if (!bytes || !width || width * sizeOf(x.shape) !== bytesOf(x)) return undefined;
    const strides = stridesOf(x.shape);
    const shape = permutation.map((axis) => x.shape[axis]);
    const made = new Uint8Array(bytes.byteLength);
    const at = shape.map(() => 0);
    let from = 0;
    for (let to = 0; to < made.byteLength; to += width) {
      for (let i = 0; i < width; i++) made[to + i] = bytes[from + i];
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        const step = strides[permutation[axis]] * width;
        from += step;
        if (++at[axis] < shape[axis]) break;
        from -= step * shape[axis];
        at[axis] = 0;
      }
    }
    return this.known({ dataType: x.dataType, shape }, made);
  }

  /** Operands, and everything from which they are made. */
  reached(operands: readonly MlOperand[]): ReadonlySet<unknown> {
    const found = new Set<unknown>(operands);
    for (const operand of found) for (const part of partsOf(this.sources.get(operand))) found.add(part);
    return found;
  }

  /** An operator whose arguments are only operands. */
  of(name: string, ...terms: readonly Term[]): MlOperand {
    const like = terms.find((term) => typeof term !== 'number')!;
    return this.plain(name, ...terms.map((term) => (typeof term === 'number' ? this.number(like, term) : term)));
  }

  number({ dataType }: MlOperand, value: number): MlOperand {
    return this.constant([value], [], dataType);
  }

  constant(
    values: readonly number[],
    shape: readonly number[] = [values.length],
    dataType: MlDataType = 'int32',
  ): MlOperand {
    return this.known({ dataType, shape }, new Uint8Array(ELEMENTS[dataType]!(values).buffer));
  }

  /** A constant by its bytes. */
  known(descriptor: MlDescriptor, bytes: Uint8Array): MlOperand {
    const made = this.builder.constant(descriptor, bytes);
    this.contents.set(made, bytes);
    return made;
  }

  /** The bytes of a constant. */
  bytesOf(x: MlOperand): Uint8Array | undefined {
    return this.contents.get(x);
  }

  /** Reshaped; a constant if x is one. */
  shaped(x: MlOperand, shape: readonly number[]): MlOperand {
    const bytes = this.bytesOf(x);
    return bytes ? this.known({ dataType: x.dataType, shape }, bytes) : this.reshape(x, shape);
  }

  /**
   * The same numbers, behind a barrier across which the browser joins no operators. Its page crashes if quantizeLinear
   * follows an operator on channels-first images, for which it inserts transposes.
   */
  apart(x: unknown): MlOperand {
    return this.plain('identity', x);
  }

  /** The floats of integers, for any following operator. */
  inAnySteps(x: MlOperand): MlOperand {
    this.anySteps.add(x);
    return x;
  }

  /** The floats of integers with one scale. */
  dequantized(x: MlOperand, steps: Steps): MlOperand {
    const [scale, zero] = this.ofAll(x, steps);
    return this.plain('dequantizeLinear', x, scale, zero);
  }

  /** Integers of one scale, which is recorded. */
  quantized(x: MlOperand, steps: Steps): MlOperand {
    const [scale, zero] = this.ofAll(x, steps);
    const made = this.plain('quantizeLinear', x, scale, zero);
    if (this.bytesOf(scale) && this.bytesOf(zero)) this.steps.set(made, steps);
    return made;
  }

  /** Integers with any scale; if none is recorded, the scale is one. */
  counted(x: MlOperand): MlOperand {
    if (x.dataType === 'int8' && !this.steps.has(x))
      this.steps.set(x, [this.constant([1], [], 'float32'), this.number(x, 0)]);
    return x;
  }

  private ofAll({ shape }: MlOperand, steps: Steps): readonly MlOperand[] {
    const ones = shape.map(() => 1);
    return steps.map((one) => this.shaped(one, ones));
  }

  cast(x: MlOperand, dataType: MlDataType): MlOperand {
    return x.dataType === dataType ? x : this.plain('cast', x, dataType);
  }

  reshape(x: MlOperand, shape: readonly number[]): MlOperand {
    return `${x.shape}` === `${shape}` ? x : this.plain('reshape', x, [...shape]);
  }

  /** In a type with arithmetic, for integers of few bits and unsigned ones. */
  wide(x: MlOperand): MlOperand {
    return this.cast(x, WIDE[x.dataType] ?? x.dataType);
  }

  /** For operators on single elements: some accept few axes. */
  flat(x: MlOperand, of: (x: MlOperand) => MlOperand): MlOperand {
    if (x.shape.length <= 4) return of(x);
    return this.reshape(of(this.reshape(x, [sizeOf(x.shape)])), x.shape);
  }

  /** Slices of an axis by known places. */
  picked(x: MlOperand, axis: number, places: readonly number[]): MlOperand {
    return this.plain('gather', x, this.constant(places), { axis });
  }

  /** Part of an axis, with a step. */
  part(x: MlOperand, axis: number, start: number, size: number, step = 1): MlOperand {
    if (start === 0 && size === x.shape[axis] && step === 1) return x;
    const at = (one: number, other: (dim: number) => number) =>
      x.shape.map((dim, i) => (i === axis ? one : other(dim)));
    const [starts, sizes] = [at(start, () => 0), at(size, (dim) => dim)];
    return this.plain('slice', x, starts, sizes, { strides: at(step, () => 1) });
  }

  /** With `value` before and after along some axes. */
  padded(x: MlOperand, before: readonly number[], after: readonly number[], value = 0): MlOperand {
    if ([...before, ...after].every((count) => count === 0)) return x;
    return this.plain('pad', x, before, after, { mode: 'constant', value });
  }
}

/** Operands are arguments, in lists, or in options. */
function partsOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  return [value, ...Object.values(value).flatMap(partsOf)];
}

type Elements = (values: readonly number[]) => { readonly buffer: ArrayBufferLike };
const { Float16Array: Halves } = globalThis as unknown as { Float16Array: { from: Elements } };

const ELEMENTS: { readonly [type in MlDataType]?: Elements } = {
  float32: (values) => Float32Array.from(values),
  float16: (values) => Halves.from(values),
  int64: (values) => BigInt64Array.from(values.map(BigInt)),
  int32: (values) => Int32Array.from(values),
  int8: (values) => Int8Array.from(values),
  uint8: (values) => Uint8Array.from(values),
};

const WIDE: { readonly [type in MlDataType]?: MlDataType } = { int8: 'int32', uint8: 'int32', uint32: 'int64' };
