// How operators are put into a graph, and of which operands it is made.
import { sizeOf } from '../../contract/shape';
import { type MlBuilder, type MlContext, type MlDataType, type MlOperand, newBuilder } from './ml';

/** An operand, or a number of the type that the first operand beside it has. */
export type Term = MlOperand | number;

export class Formula {
  readonly builder: MlBuilder;
  private readonly sources = new Map<unknown, readonly unknown[]>();

  constructor(context: MlContext) {
    this.builder = newBuilder(context);
  }

  /** An operator whose arguments are WebNN's, as they are. */
  plain(name: string, ...given: readonly unknown[]): MlOperand {
    return this.several(name, ...given)[0];
  }

  /** One with several results. */
  several(name: string, ...given: readonly unknown[]): readonly MlOperand[] {
    const made = [this.builder[name](...(given as never[]))].flat() as MlOperand[];
    for (const operand of made) this.sources.set(operand, given);
    return made;
  }

  /** Operands, and all that they are made of. */
  reached(operands: readonly MlOperand[]): ReadonlySet<unknown> {
    const found = new Set<unknown>(operands);
    for (const operand of found) for (const part of partsOf(this.sources.get(operand))) found.add(part);
    return found;
  }

  /** An operator on operands alone. */
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
    return this.builder.constant({ dataType, shape }, new Uint8Array(ELEMENTS[dataType]!(values).buffer));
  }

  cast(x: MlOperand, dataType: MlDataType): MlOperand {
    return x.dataType === dataType ? x : this.plain('cast', x, dataType);
  }

  reshape(x: MlOperand, shape: readonly number[]): MlOperand {
    return `${x.shape}` === `${shape}` ? x : this.plain('reshape', x, [...shape]);
  }

  /** In a type that arithmetic has: integers of few bits, and those without a sign. */
  wide(x: MlOperand): MlOperand {
    return this.cast(x, WIDE[x.dataType] ?? x.dataType);
  }

  /** Operators on single elements: some want few axes. */
  flat(x: MlOperand, of: (x: MlOperand) => MlOperand): MlOperand {
    if (x.shape.length <= 4) return of(x);
    return this.reshape(of(this.reshape(x, [sizeOf(x.shape)])), x.shape);
  }

  /** Slices of an axis by their places, which a kernel knows. */
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
