// Operators made of several of WebNN's.
import type { Requirement } from '../../../../contract/kernel';
import { normalizeAxis, sizeOf } from '../../../../contract/shape';
import type { MlBuilder, MlDataType, MlOperand } from '../../ml';
import type { Call, Emit } from '../../operator';

/** An operand, or a number of the type that the first operand beside it has. */
export type Term = MlOperand | number;

export class Formula {
  constructor(private readonly builder: MlBuilder) {}

  /** An operator whose arguments are WebNN's, as they are. */
  plain(name: string, ...given: readonly unknown[]): MlOperand {
    return this.builder[name](...(given as never[])) as MlOperand;
  }

  /** An operator on operands alone. */
  of(name: string, ...terms: readonly Term[]): MlOperand {
    const like = terms.find((term) => typeof term !== 'number')!;
    return this.plain(name, ...terms.map((term) => (typeof term === 'number' ? this.number(like, term) : term)));
  }

  number({ dataType }: MlOperand, value: number): MlOperand {
    return this.constant(dataType, [value], []);
  }

  constant(dataType: MlDataType, values: readonly number[], shape: readonly number[]): MlOperand {
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

type Parts = (f: Formula, x: readonly MlOperand[], call: Call) => MlOperand | readonly MlOperand[];

/** Emits an operator's parts. */
export const formula =
  (parts: Parts) =>
  (call: Call): Emit =>
  (builder, x) =>
    parts(new Formula(builder), x, call);

/** Of inputs that may not have more axes. */
export const axesUpTo = (max: number, ...inputs: readonly number[]): Requirement[] =>
  inputs.map((input) => ({ rank: { input, max }, otherwise: `more than ${max} axes` }));

export const axisOf = ({ attributes, inputs }: Call, otherwise: number): number =>
  normalizeAxis(attributes.integer('axis', otherwise), inputs[0]!.dims.length);
