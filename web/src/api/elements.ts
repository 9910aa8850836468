// Elements in JavaScript's own types, by onnxruntime-web's names of types.
import { DType, ErrorCode } from '../schema';
import { RuntimeError } from '../errors';

export type TypedArray =
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array;

/** float16 as Uint16Array, its bits; bool as Uint8Array, 0 or 1. */
const ARRAYS = {
  float32: { dtype: DType.float32, array: Float32Array },
  float64: { dtype: DType.float64, array: Float64Array },
  float16: { dtype: DType.float16, array: Uint16Array },
  int64: { dtype: DType.int64, array: BigInt64Array },
  uint64: { dtype: DType.uint64, array: BigUint64Array },
  int32: { dtype: DType.int32, array: Int32Array },
  uint32: { dtype: DType.uint32, array: Uint32Array },
  int16: { dtype: DType.int16, array: Int16Array },
  uint16: { dtype: DType.uint16, array: Uint16Array },
  int8: { dtype: DType.int8, array: Int8Array },
  uint8: { dtype: DType.uint8, array: Uint8Array },
  bool: { dtype: DType.bool_, array: Uint8Array },
} as const;

export type TensorType = keyof typeof ARRAYS | 'string';
export type TensorData = TypedArray | string[];

export function dtypeOfType(type: TensorType): DType {
  if (type === 'string') return DType.string_;
  const found = ARRAYS[type];
  if (!found)
    throw invalid(
      `there is no tensor type "${String(type)}"; there are ${[...Object.keys(ARRAYS), 'string'].join(', ')}`,
    );
  return found.dtype;
}

export function typeOfDtype(dtype: DType): TensorType {
  if (dtype === DType.string_) return 'string';
  const found = Object.entries(ARRAYS).find(([, entry]) => entry.dtype === dtype);
  if (!found)
    throw new RuntimeError(
      ErrorCode.not_implemented,
      `JavaScript has no array for ${DType[dtype]}: use Session, which gives bytes`,
    );
  return found[0] as TensorType;
}

/** Of a type in ONNX's words; undefined where that is no tensor. */
export function typeInOnnx(words: string): TensorType | undefined {
  const element = /^tensor\((.+)\)$/.exec(words)?.[1];
  const renamed: { [name: string]: string } = { float: 'float32', double: 'float64' };
  return element === undefined ? undefined : ((renamed[element] ?? element) as TensorType);
}

/** Takes plain arrays of numbers too. */
export function toData(
  type: TensorType,
  values: TensorData | readonly (number | bigint | boolean | string)[],
): TensorData {
  if (type === 'string') return Array.from(values as string[]);
  const { array } = ARRAYS[type];
  if (values instanceof array) return values;
  if (ArrayBuffer.isView(values))
    throw invalid(`a tensor of ${type} takes ${array.name}, not ${values.constructor.name}`);
  const big = type === 'int64' || type === 'uint64';
  const items = Array.from(values as readonly (number | bigint | boolean)[], (value) =>
    big ? BigInt(value) : Number(value),
  );
  return (array as { from(items: readonly unknown[]): TypedArray }).from(items);
}

/** Strings: a uint32 byte length, then UTF-8, each. */
export function toBytes(data: TensorData): Uint8Array {
  if (!Array.isArray(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const texts = data.map((text) => new TextEncoder().encode(text));
  const bytes = new Uint8Array(texts.reduce((sum, { byteLength }) => sum + 4 + byteLength, 0));
  let at = 0;
  for (const text of texts) {
    new DataView(bytes.buffer).setUint32(at, text.byteLength, true);
    bytes.set(text, at + 4);
    at += 4 + text.byteLength;
  }
  return bytes;
}

export function fromBytes(type: TensorType, bytes: Uint8Array): TensorData {
  if (type !== 'string') {
    const { array } = ARRAYS[type];
    const { buffer, byteOffset, byteLength } = bytes.byteOffset % array.BYTES_PER_ELEMENT === 0 ? bytes : bytes.slice();
    return new array(buffer as ArrayBuffer, byteOffset, byteLength / array.BYTES_PER_ELEMENT);
  }
  const texts: string[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; ) {
    const end = at + 4 + view.getUint32(at, true);
    texts.push(new TextDecoder().decode(bytes.subarray(at + 4, end)));
    at = end;
  }
  return texts;
}

export function invalid(message: string): RuntimeError {
  return new RuntimeError(ErrorCode.invalid_argument, message);
}
