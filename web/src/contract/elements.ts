// The forms of elements on the CPU and on the GPU, and their conversion (internals, section 5).
import { invalid } from '../errors';
import { DType } from '../schema';
import { fromBfloats, fromHalves } from './float16';
import type { DeviceTraits, DTypeName, Packing, StorageType } from './kernel';

interface ElementType {
  readonly name: DTypeName;
  /** Bytes on the CPU. */
  readonly bytes: number;
  /** The type in a shader; f16 only if the device has it (see ElementForms). */
  readonly storage: StorageType;
  readonly packing?: Packing;
}

const TYPES: { readonly [dtype: number]: ElementType } = {
  [DType.float32]: { name: 'float32', bytes: 4, storage: 'f32' },
  [DType.float16]: { name: 'float16', bytes: 2, storage: 'f16', packing: 'f16' },
  [DType.bfloat16]: { name: 'bfloat16', bytes: 2, storage: 'f32', packing: 'bf16' },
  [DType.int64]: { name: 'int64', bytes: 8, storage: 'i32' },
  [DType.int32]: { name: 'int32', bytes: 4, storage: 'i32' },
  [DType.int16]: { name: 'int16', bytes: 2, storage: 'i32', packing: 'i16' },
  [DType.int8]: { name: 'int8', bytes: 1, storage: 'i32', packing: 'i8' },
  [DType.uint64]: { name: 'uint64', bytes: 8, storage: 'u32' },
  [DType.uint32]: { name: 'uint32', bytes: 4, storage: 'u32' },
  [DType.uint16]: { name: 'uint16', bytes: 2, storage: 'u32', packing: 'u16' },
  [DType.uint8]: { name: 'uint8', bytes: 1, storage: 'u32', packing: 'u8' },
  [DType.bool_]: { name: 'bool', bytes: 1, storage: 'u32' },
};

/** CPU elements that a Uint8Array holds as bytes. */
const VIEWS: { readonly [name in DTypeName]?: (bytes: Uint8Array) => ArrayLike<number | bigint> } = {
  int64: (b) => new BigInt64Array(b.buffer, b.byteOffset, b.byteLength >> 3),
  uint64: (b) => new BigUint64Array(b.buffer, b.byteOffset, b.byteLength >> 3),
  int32: (b) => new Int32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  uint32: (b) => new Uint32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  float16: (b) => fromHalves(new Uint16Array(b.buffer, b.byteOffset, b.byteLength >> 1)),
  bfloat16: (b) => fromBfloats(new Uint16Array(b.buffer, b.byteOffset, b.byteLength >> 1)),
  float32: (b) => new Float32Array(b.buffer, b.byteOffset, b.byteLength >> 2),
  int16: (b) => new Int16Array(b.buffer, b.byteOffset, b.byteLength >> 1),
  uint16: (b) => new Uint16Array(b.buffer, b.byteOffset, b.byteLength >> 1),
  int8: (b) => new Int8Array(b.buffer, b.byteOffset, b.byteLength),
  uint8: (b) => b,
  bool: (b) => b,
};

export function elementCount(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1);
}

export function typeName(dtype: DType): string {
  return TYPES[dtype]?.name ?? DType[dtype] ?? `dtype ${dtype}`;
}

export function dtypeOf(name: DTypeName): DType {
  return name === 'bool' ? DType.bool_ : DType[name as keyof typeof DType];
}

/** Bytes of one element on the CPU, or undefined for types without a form on the GPU. */
export function cpuElementSize(dtype: DType): number | undefined {
  return TYPES[dtype]?.bytes;
}

/** True if elements of this type can be on a GPU. */
export function hasGpuForm(dtype: DType): boolean {
  return TYPES[dtype] !== undefined;
}

export const PACKED_BITS: { readonly [packing in Packing]: 8 | 16 } = {
  f16: 16,
  bf16: 16,
  i8: 8,
  u8: 8,
  i16: 16,
  u16: 16,
};

/** Bytes of one element in the GPU's form. */
export function storageSize({
  storage,
  packing,
}: {
  readonly storage: StorageType;
  readonly packing?: Packing;
}): number {
  if (packing) return PACKED_BITS[packing] / 8;
  return storage === 'f16' ? 2 : 4;
}

function aligned(bytes: Uint8Array, size: number): Uint8Array {
  return bytes.byteOffset % size === 0 ? bytes : bytes.slice();
}

/** Elements as numbers. 64-bit integers are clamped to ±(2^53 - 1): Slice's "to the end" is the largest int64. */
export function toNumbers(dtype: DType, bytes: Uint8Array): number[] {
  const type = TYPES[dtype];
  const view = type && VIEWS[type.name];
  if (!view) throw new TypeError(`cannot read ${typeName(dtype)} as numbers`);
  return Array.from(view(aligned(bytes, type.bytes)), (value) => {
    if (typeof value === 'number') return value;
    return Math.min(Number.MAX_SAFE_INTEGER, Math.max(Number.MIN_SAFE_INTEGER, Number(value)));
  });
}

/** The same, for any device. */
export type Forms = Pick<ElementForms, keyof ElementForms>;

/** The forms of elements on one device, and their conversion. The device owns it: Gpu.elements. */
export class ElementForms {
  /** Without f16, float16 is packed: an f32 to shaders, but a float16 in memory. */
  constructor(private readonly device: Pick<DeviceTraits, 'f16'>) {}

  storage(dtype: DType): StorageType {
    const { storage } = typeOnGpu(dtype);
    return storage === 'f16' && !this.device.f16 ? 'f32' : storage;
  }

  packing(dtype: DType): Packing | undefined {
    const { packing } = typeOnGpu(dtype);
    return packing === 'f16' && this.device.f16 ? undefined : packing;
  }

  /** Bytes of one element on the GPU. */
  size(dtype: DType): number {
    return storageSize({ storage: this.storage(dtype), packing: this.packing(dtype) });
  }

  /**
   * True if elements have the same form in both places: all but 64-bit integers and bool, which have 32 bits on the
   * GPU.
   */
  same(dtype: DType): boolean {
    return typeOnGpu(dtype).bytes === this.size(dtype);
  }

  /** CPU bytes in the GPU's form; the same array if nothing changes. */
  widen(dtype: DType, bytes: Uint8Array): Uint8Array {
    if (this.same(dtype)) return bytes;
    const type = typeOnGpu(dtype);
    const values = VIEWS[type.name]!(aligned(bytes, type.bytes));
    const wide = type.storage === 'i32' ? new Int32Array(values.length) : new Uint32Array(values.length);
    for (let i = 0; i < values.length; i++) {
      const value = Number(values[i]);
      wide[i] = type.name === 'bool' ? (value ? 1 : 0) : value;
      if (wide[i] !== value && type.name !== 'bool') {
        const message = `${type.name} value ${values[i]} does not fit the 32 bits that it has on the GPU`;
        throw invalid(`${message} (session configuration session.wide_integers=1 keeps such inputs on the CPU)`);
      }
    }
    return new Uint8Array(wide.buffer);
  }

  /** GPU bytes in the CPU's form; a new array unless nothing changes. */
  narrow(dtype: DType, bytes: Uint8Array): Uint8Array {
    if (this.same(dtype)) return bytes;
    const type = typeOnGpu(dtype);
    const { buffer, byteOffset } = aligned(bytes, 4);
    const Words = type.storage === 'i32' ? Int32Array : Uint32Array;
    const wide = new Words(buffer as ArrayBuffer, byteOffset, bytes.byteLength >> 2);
    switch (type.name) {
      case 'int64':
        return new Uint8Array(BigInt64Array.from(wide as Int32Array, BigInt).buffer);
      case 'uint64':
        return new Uint8Array(BigUint64Array.from(wide as Uint32Array, BigInt).buffer);
      default:
        return Uint8Array.from(wide, (value) => (value ? 1 : 0));
    }
  }
}

function typeOnGpu(dtype: DType): ElementType {
  const type = TYPES[dtype];
  if (!type) throw new TypeError(`${typeName(dtype)} has no form on the GPU`);
  return type;
}

export function sameContents<T extends Uint8Array | Uint32Array>(a: T, b: T): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
