// How elements lie on the CPU and on the GPU, and the way between the two (internals, section 5).
import { DType } from '../schema';
import type { DTypeName, StorageType } from './kernel';

interface ElementType {
  readonly name: DTypeName;
  /** Bytes on the CPU. */
  readonly bytes: number;
  readonly storage: StorageType;
}

const TYPES: { readonly [dtype: number]: ElementType } = {
  [DType.float32]: { name: 'float32', bytes: 4, storage: 'f32' },
  [DType.float16]: { name: 'float16', bytes: 2, storage: 'f16' },
  [DType.int64]: { name: 'int64', bytes: 8, storage: 'i32' },
  [DType.int32]: { name: 'int32', bytes: 4, storage: 'i32' },
  [DType.int16]: { name: 'int16', bytes: 2, storage: 'i32' },
  [DType.int8]: { name: 'int8', bytes: 1, storage: 'i32' },
  [DType.uint64]: { name: 'uint64', bytes: 8, storage: 'u32' },
  [DType.uint32]: { name: 'uint32', bytes: 4, storage: 'u32' },
  [DType.uint16]: { name: 'uint16', bytes: 2, storage: 'u32' },
  [DType.uint8]: { name: 'uint8', bytes: 1, storage: 'u32' },
  [DType.bool_]: { name: 'bool', bytes: 1, storage: 'u32' },
};

/** What of CPU elements lies in a Uint8Array. */
const VIEWS: { readonly [name in DTypeName]?: (bytes: Uint8Array) => ArrayLike<number | bigint> } = {
  int64: (b) => new BigInt64Array(b.buffer, b.byteOffset, b.byteLength >> 3),
  uint64: (b) => new BigUint64Array(b.buffer, b.byteOffset, b.byteLength >> 3),
  int32: (b) => new Int32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  uint32: (b) => new Uint32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  float16: (b) => Array.from(new Uint16Array(b.buffer, b.byteOffset, b.byteLength >> 1), fromHalf),
  float32: (b) => new Float32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  int16: (b) => new Int16Array(b.buffer, b.byteOffset, b.byteLength >> 1),
  uint16: (b) => new Uint16Array(b.buffer, b.byteOffset, b.byteLength >> 1),
  int8: (b) => new Int8Array(b.buffer, b.byteOffset, b.byteLength),
  uint8: (b) => b,
  bool: (b) => b,
};

/** The number that the bits of a float16 mean; not every browser has Float16Array. */
function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

export function elementCount(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1);
}

export function typeName(dtype: DType): string {
  return TYPES[dtype]?.name ?? DType[dtype] ?? `dtype ${dtype}`;
}

export function dtypeOf(name: DTypeName): DType {
  return name === 'bool' ? DType.bool_ : DType[name as keyof typeof DType];
}

/** Bytes of one element on the CPU, or undefined for types that the GPU does not know. */
export function cpuElementSize(dtype: DType): number | undefined {
  return TYPES[dtype]?.bytes;
}

/** Bytes of one element on the GPU, or undefined where it has no form there. */
export function gpuElementSize(dtype: DType): number | undefined {
  const type = TYPES[dtype];
  return type && (type.storage === 'f16' ? 2 : 4);
}

export function storageOf(dtype: DType): StorageType {
  const type = TYPES[dtype];
  if (!type) throw new TypeError(`${typeName(dtype)} has no form on the GPU`);
  return type.storage;
}

function aligned(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : bytes.slice();
}

/** Elements as numbers. 64-bit integers are clamped to ±(2^53 - 1): Slice says "to the end" with the largest int64. */
export function toNumbers(dtype: DType, bytes: Uint8Array): number[] {
  const type = TYPES[dtype];
  const view = type && VIEWS[type.name];
  if (!view) throw new TypeError(`cannot read ${typeName(dtype)} as numbers`);
  return Array.from(view(aligned(bytes, type.bytes)), (value) => {
    if (typeof value === 'number') return value;
    return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, Number(value)));
  });
}

/** CPU bytes in the form that the GPU wants; the very same array when nothing changes. */
export function widen(dtype: DType, bytes: Uint8Array): Uint8Array {
  const type = TYPES[dtype];
  if (!type) throw new TypeError(`${typeName(dtype)} has no form on the GPU`);
  if (type.bytes === gpuElementSize(dtype)) return bytes;
  const values = VIEWS[type.name]!(aligned(bytes, type.bytes));
  const wide = type.storage === 'i32' ? new Int32Array(values.length) : new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = Number(values[i]);
    wide[i] = type.name === 'bool' ? (value ? 1 : 0) : value;
    if (wide[i] !== value && type.name !== 'bool') {
      throw new RangeError(`${type.name} value ${values[i]} does not fit the 32 bits that it has on the GPU`);
    }
  }
  return new Uint8Array(wide.buffer);
}

/** GPU bytes in the form of the CPU; a new array unless nothing changes. */
export function narrow(dtype: DType, bytes: Uint8Array): Uint8Array {
  const type = TYPES[dtype];
  if (!type) throw new TypeError(`${typeName(dtype)} has no form on the GPU`);
  if (type.bytes === gpuElementSize(dtype)) return bytes;
  const source = aligned(bytes, 4);
  const count = bytes.byteLength >> 2;
  const Words = type.storage === 'i32' ? Int32Array : Uint32Array;
  const wide = new Words(source.buffer as ArrayBuffer, source.byteOffset, count);
  switch (type.name) {
    case 'int64': return new Uint8Array(BigInt64Array.from(wide as Int32Array, BigInt).buffer);
    case 'uint64': return new Uint8Array(BigUint64Array.from(wide as Uint32Array, BigInt).buffer);
    case 'int16': case 'uint16': return new Uint8Array(Uint16Array.from(wide).buffer);
    case 'bool': return Uint8Array.from(wide, (value) => (value ? 1 : 0));
    default: return Uint8Array.from(wide);
  }
}
