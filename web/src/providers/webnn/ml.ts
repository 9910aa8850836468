// WebNN's interfaces, as far as this provider uses them: TypeScript has no declarations of them.
// https://www.w3.org/TR/webnn/

import { sizeOf } from '../../contract/shape';
import { DType } from '../../schema';

export const NAME = 'webnn';

export type MlDataType =
  | 'float32'
  | 'float16'
  | 'int64'
  | 'uint64'
  | 'int32'
  | 'uint32'
  | 'int8'
  | 'uint8'
  | 'int4'
  | 'uint4';

export interface MlDescriptor {
  readonly dataType: MlDataType;
  readonly shape: readonly number[];
}

export interface MlOperand extends MlDescriptor {
  readonly __operand?: never;
}

export interface MlTensor extends MlDescriptor {
  destroy(): void;
}

export interface MlGraph {
  destroy(): void;
}

/** Limits of one operand of an operator. */
export interface MlLimits {
  readonly dataTypes?: readonly MlDataType[];
  readonly rankRange?: { readonly min: number; readonly max: number };
}

export interface MlContext {
  readonly lost: Promise<{ readonly message: string }>;
  createTensor(descriptor: MlDescriptor & { readable?: boolean; writable?: boolean }): Promise<MlTensor>;
  writeTensor(tensor: MlTensor, bytes: Uint8Array): void;
  readTensor(tensor: MlTensor): Promise<ArrayBuffer>;
  dispatch(
    graph: MlGraph,
    inputs: { readonly [name: string]: MlTensor },
    outputs: { readonly [name: string]: MlTensor },
  ): void;
  opSupportLimits(): { readonly [op: string]: unknown };
  destroy(): void;
}

/** Its other methods, one for each operator, have operands as arguments, and options last. */
export interface MlBuilder {
  input(name: string, descriptor: MlDescriptor): MlOperand;
  constant(descriptor: MlDescriptor, bytes: Uint8Array): MlOperand;
  build(outputs: { readonly [name: string]: MlOperand }): Promise<MlGraph>;
  readonly [op: string]: (...args: never[]) => unknown;
}

const BYTES: { readonly [type in MlDataType]?: number } = { float16: 2, int64: 8, uint64: 8, int8: 1, uint8: 1 };

export function bytesOf({ dataType, shape }: MlDescriptor): number {
  return sizeOf(shape) * (BYTES[dataType] ?? 4);
}

export const hasForm = (tensor: MlDescriptor, { dataType, shape }: MlDescriptor) =>
  tensor.dataType === dataType && `${tensor.shape}` === `${shape}`;

/** The possible types of a tensor, except those smaller than a byte. */
const TYPES: { readonly [dtype: number]: MlDataType } = {
  [DType.float32]: 'float32',
  [DType.float16]: 'float16',
  [DType.int64]: 'int64',
  [DType.uint64]: 'uint64',
  [DType.int32]: 'int32',
  [DType.uint32]: 'uint32',
  [DType.int8]: 'int8',
  [DType.uint8]: 'uint8',
  [DType.bool_]: 'uint8',
};

export const hasMlType = (dtype: DType) => TYPES[dtype] !== undefined;

export function descriptorOf({
  dtype,
  dims,
}: {
  readonly dtype: DType;
  readonly dims: readonly number[];
}): MlDescriptor {
  return { dataType: TYPES[dtype], shape: dims };
}

interface Ml {
  createContext(options?: object): Promise<MlContext>;
}

export function navigatorMl(): Ml | undefined {
  return (globalThis.navigator as { readonly ml?: Ml } | undefined)?.ml;
}

export function newBuilder(context: MlContext): MlBuilder {
  const { MLGraphBuilder } = globalThis as unknown as { MLGraphBuilder: new (context: MlContext) => MlBuilder };
  return new MLGraphBuilder(context);
}
