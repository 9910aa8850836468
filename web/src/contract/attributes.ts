// Reads a node's attributes from the form of jsepCreateKernel.
import * as flatbuffers from 'flatbuffers';
import { type Attribute, Attributes as Table, type DType, ErrorCode } from '../schema';
import { RuntimeError } from '../errors';

/** A constant in an attribute, e.g. the value of ConstantOfShape. */
export interface AttributeTensor {
  readonly dtype: DType;
  readonly dims: readonly number[];
  readonly bytes: Uint8Array;
}

/** Attributes written by hand (tests, JavaScript callers). */
export type AttributeRecord = {
  readonly [name: string]: number | string | readonly number[] | readonly string[] | AttributeTensor;
};

/**
 * A node's attributes in the form that Python's lowering produces. Callers supply the defaults. Integers beyond 2^53
 * are inexact.
 */
export class Attributes {
  private readonly values = new Map<string, unknown>();

  constructor(source: Uint8Array | AttributeRecord) {
    if (!(source instanceof Uint8Array)) {
      for (const [name, value] of Object.entries(source)) this.values.set(name, value);
    } else if (source.length > 0) {
      // Copied: the bytes are in the core's heap, which may move.
      const table = Table.getRootAsAttributes(new flatbuffers.ByteBuffer(source.slice()));
      for (let i = 0; i < table.itemsLength(); i++) {
        const item = table.items(i)!;
        this.values.set(item.name()!, READERS[item.type()]?.(item));
      }
    }
  }

  has(name: string): boolean {
    return this.values.has(name);
  }
  integer(name: string, otherwise: number): number {
    return this.number(name, otherwise);
  }
  number(name: string, otherwise: number): number {
    return this.given(name, isNumber) ?? otherwise;
  }
  text(name: string, otherwise: string): string {
    return this.given(name, isText) ?? otherwise;
  }
  integers(name: string, otherwise: readonly number[] = []): number[] {
    return this.numbers(name, otherwise);
  }
  numbers(name: string, otherwise: readonly number[] = []): number[] {
    return [...(this.given(name, areNumbers) ?? otherwise)];
  }
  texts(name: string): string[] {
    return [...(this.given(name, areTexts) ?? [])];
  }
  tensor(name: string): AttributeTensor | undefined {
    return this.given(name, isTensor);
  }

  private given<T>(name: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.values.get(name);
    if (value === undefined || is(value)) return value;
    throw new RuntimeError(ErrorCode.invalid_graph, `the attribute ${name} is of another type than its operator has`);
  }
}

const isNumber = (value: unknown): value is number => typeof value === 'number';
const isText = (value: unknown): value is string => typeof value === 'string';
const areNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every(isNumber);
const areTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);
const isTensor = (value: unknown): value is AttributeTensor =>
  typeof value === 'object' && value !== null && 'bytes' in value;

/** By AttributeType. */
const READERS: readonly (((item: Attribute) => unknown) | undefined)[] = [
  undefined,
  (item) => Number(item.i()),
  (item) => item.f(),
  (item) => item.s() ?? '',
  (item) => Array.from({ length: item.intsLength() }, (_, i) => Number(item.ints(i))),
  (item) => Array.from({ length: item.floatsLength() }, (_, i) => item.floats(i)!),
  (item) => Array.from({ length: item.stringsLength() }, (_, i) => item.strings(i)),
  (item) => {
    const tensor = item.tensor();
    if (!tensor) return undefined;
    const dims = Array.from({ length: tensor.dimsLength() }, (_, i) => Number(tensor.dims(i)));
    return { dtype: tensor.dtype(), dims, bytes: tensor.dataArray()?.slice() ?? new Uint8Array(0) };
  },
];
