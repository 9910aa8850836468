// Elements in JavaScript's own types, by onnxruntime-web's names of types.
import { DType, ErrorCode } from '../schema';
import { describe, invalid, RuntimeError } from '../errors';
import type { TensorData, TensorType } from './tensor_types';

interface Numbers {
  readonly length: number;
  readonly byteLength: number;
  readonly byteOffset: number;
  readonly buffer: ArrayBufferLike;
}

interface NumbersClass {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): Numbers;
  from(values: readonly unknown[]): Numbers;
}

interface Elements {
  readonly dtype: DType;
  readonly array: NumbersClass;
  /** Another array class with elements of the same size, read as bits. */
  readonly bits?: NumbersClass;
  /** Elements per byte, if there are several. */
  readonly perByte?: number;
  /** The form of elements in JavaScript, if they are not numbers. */
  readonly are?: 'bits' | 'bigints';
}

/** Without this class float16 is bits. */
const Float16Array = (globalThis as { readonly Float16Array?: NumbersClass }).Float16Array;

const ARRAYS: { readonly [type in Exclude<TensorType, 'string'>]: Elements } = {
  float32: { dtype: DType.float32, array: Float32Array },
  float64: { dtype: DType.float64, array: Float64Array },
  float16: Float16Array
    ? { dtype: DType.float16, array: Float16Array, bits: Uint16Array }
    : { dtype: DType.float16, array: Uint16Array, are: 'bits' },
  int64: { dtype: DType.int64, array: BigInt64Array, are: 'bigints' },
  uint64: { dtype: DType.uint64, array: BigUint64Array, are: 'bigints' },
  int32: { dtype: DType.int32, array: Int32Array },
  uint32: { dtype: DType.uint32, array: Uint32Array },
  int16: { dtype: DType.int16, array: Int16Array },
  uint16: { dtype: DType.uint16, array: Uint16Array },
  int8: { dtype: DType.int8, array: Int8Array },
  uint8: { dtype: DType.uint8, array: Uint8Array },
  bool: { dtype: DType.bool_, array: Uint8Array },
  int4: { dtype: DType.int4, array: Int8Array, bits: Uint8Array, perByte: 2, are: 'bits' },
  uint4: { dtype: DType.uint4, array: Uint8Array, perByte: 2, are: 'bits' },
  bfloat16: { dtype: DType.bfloat16, array: Uint16Array, are: 'bits' },
  float8e4m3fn: { dtype: DType.float8e4m3fn, array: Uint8Array, are: 'bits' },
  float8e4m3fnuz: { dtype: DType.float8e4m3fnuz, array: Uint8Array, are: 'bits' },
  float8e5m2: { dtype: DType.float8e5m2, array: Uint8Array, are: 'bits' },
  float8e5m2fnuz: { dtype: DType.float8e5m2fnuz, array: Uint8Array, are: 'bits' },
  float8e8m0: { dtype: DType.float8e8m0, array: Uint8Array, are: 'bits' },
  float4e2m1: { dtype: DType.float4e2m1, array: Uint8Array, perByte: 2, are: 'bits' },
  uint2: { dtype: DType.uint2, array: Uint8Array, perByte: 4, are: 'bits' },
  int2: { dtype: DType.int2, array: Int8Array, bits: Uint8Array, perByte: 4, are: 'bits' },
};

/** The types of arrays with one possible type, and the default types of the others. */
const TYPES_OF_ARRAYS = new Map<NumbersClass, TensorType>(
  (
    ['float32', 'float64', 'float16', 'int64', 'uint64', 'int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8'] as const
  ).map((type) => [ARRAYS[type].array, type]),
);

function elementsOf(type: Exclude<TensorType, 'string'>): Elements {
  if (Object.hasOwn(ARRAYS, type)) return ARRAYS[type];
  throw invalid(
    `there is no tensor type "${String(type)}"; there are ${[...Object.keys(ARRAYS), 'string'].join(', ')}`,
  );
}

export function dtypeOfType(type: TensorType): DType {
  return type === 'string' ? DType.string_ : elementsOf(type).dtype;
}

export function typeOfDtype(dtype: DType): TensorType {
  if (dtype === DType.string_) return 'string';
  const found = Object.entries(ARRAYS).find(([, entry]) => entry.dtype === dtype);
  if (found) return found[0] as TensorType;
  const message = `${DType[dtype] ?? `type ${dtype}`} is no type of tensors in JavaScript`;
  throw new RuntimeError(ErrorCode.not_implemented, `${message}: add a Cast to one to the model`);
}

/** From a type in ONNX's words; undefined if it is not a tensor. */
export function typeInOnnx(words: string): TensorType | undefined {
  const element = /^tensor\((.+)\)$/.exec(words)?.[1];
  const renamed: { [name: string]: string } = { float: 'float32', double: 'float64' };
  return element === undefined ? undefined : ((renamed[element] ?? element) as TensorType);
}

/** The type of an array without further information. */
export function typeOfData(data: unknown): TensorType {
  if (data instanceof Uint8ClampedArray) return 'uint8';
  if (ArrayBuffer.isView(data)) {
    const type = TYPES_OF_ARRAYS.get(data.constructor as unknown as NumbersClass);
    if (type) return type;
    throw invalid(`a ${data.constructor.name} has no tensor type of its own: name one, as in new Tensor(type, data)`);
  }
  if (!Array.isArray(data)) throw invalid(`a tensor takes an array, not ${describe(data)}`);
  const first: unknown = data[0];
  if (typeof first === 'string') return 'string';
  if (typeof first === 'boolean') return 'bool';
  const what = data.length === 0 ? 'an empty array' : `an array whose first element is ${describe(first)}`;
  throw invalid(`${what} does not say its type: name one, as in new Tensor('float32', data)`);
}

/**
 * Elements in the form of a tensor of this type: an array of the type's own class unchanged, all others in a new one.
 */
export function toData(type: TensorType, values: unknown): TensorData {
  if (type === 'string') return texts(values);
  const { array, bits, are } = elementsOf(type);
  if (values instanceof array) return values as TensorData;
  if (type === 'uint8' && values instanceof Uint8ClampedArray) return Uint8Array.from(values);
  const names = bits ? `${array.name} or ${bits.name}` : array.name;
  if (bits && values instanceof bits) {
    const { buffer, byteOffset, length } = values as Numbers;
    return new array(buffer, byteOffset, length) as TensorData;
  }
  if (!Array.isArray(values)) throw invalid(`a tensor of ${type} takes ${names}, not ${describe(values)}`);
  if (are === 'bits') throw invalid(`a tensor of ${type} takes the bits of its elements, in a ${names}, not numbers`);
  try {
    return array.from(values.map((value) => (are === 'bigints' ? BigInt(value) : Number(value)))) as TensorData;
  } catch (error) {
    throw invalid(`these are no elements of ${type}: ${(error as Error).message}`);
  }
}

function texts(values: unknown): string[] {
  if (!Array.isArray(values)) throw invalid(`a tensor of string takes an array of strings, not ${describe(values)}`);
  const other = values.findIndex((value) => typeof value !== 'string');
  if (other >= 0) throw invalid(`element ${other} of a tensor of string is ${describe(values[other])}`);
  return values as string[];
}

/** The length of the array of a tensor of `count` elements: shorter if several share a byte. */
export function lengthOf(type: TensorType, count: number): number {
  return type === 'string' ? count : Math.ceil(count / (elementsOf(type).perByte ?? 1));
}

/** The number of elements in an array: if several share a byte, all that fit. */
export function countOf(type: TensorType, data: TensorData): number {
  return type === 'string' ? data.length : data.length * (elementsOf(type).perByte ?? 1);
}

/** Strings: a uint32 byte length, then UTF-8, each. */
export function toBytes(data: TensorData): Uint8Array {
  if (!Array.isArray(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const encoded = data.map((text) => new TextEncoder().encode(text));
  const bytes = new Uint8Array(encoded.reduce((sum, { byteLength }) => sum + 4 + byteLength, 0));
  let at = 0;
  for (const text of encoded) {
    new DataView(bytes.buffer).setUint32(at, text.byteLength, true);
    bytes.set(text, at + 4);
    at += 4 + text.byteLength;
  }
  return bytes;
}

export function fromBytes(type: TensorType, bytes: Uint8Array): TensorData {
  if (type !== 'string') {
    const { array } = elementsOf(type);
    const { buffer, byteOffset, byteLength } = bytes.byteOffset % array.BYTES_PER_ELEMENT === 0 ? bytes : bytes.slice();
    return new array(buffer, byteOffset, byteLength / array.BYTES_PER_ELEMENT) as TensorData;
  }
  const found: string[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; ) {
    const end = at + 4 + view.getUint32(at, true);
    found.push(new TextDecoder().decode(bytes.subarray(at + 4, end)));
    at = end;
  }
  return found;
}
