// A model's description of its inputs and outputs.
import type { NodeArgEntry } from '../package/header';
import { typeInOnnx } from './elements';
import type { TensorType } from './tensor_types';

/** For an input or output. An open size in `shape` is a name, or "" if it has none. */
export type ValueMetadata = NonTensorValueMetadata | TensorValueMetadata;

export interface NonTensorValueMetadata {
  readonly name: string;
  readonly isTensor: false;
}

export interface TensorValueMetadata {
  readonly name: string;
  readonly isTensor: true;
  readonly type: TensorType;
  readonly shape: readonly (number | string)[];
  /** For maps, which are tensors [maps, keys] here: the key of each column, such as the class labels of a ZipMap. */
  readonly keys?: readonly (number | string | null)[];
}

export function metadataOf({ name, type, dims, keys }: NodeArgEntry): ValueMetadata {
  const found = typeInOnnx(keys ? type.replace(/^.*(tensor\(\w+\)).*$/, '$1') : type);
  if (!found) return { name, isTensor: false };
  if (keys) return { name, isTensor: true, type: found, shape: ['', keys.length], keys };
  return { name, isTensor: true, type: found, shape: (dims ?? []).map((dim) => dim ?? '') };
}

/** The placement of a node, decided by the compiler. */
export interface PlacedNode {
  /** The node's name in the plan. */
  readonly name: string;
  readonly op_type: string;
  /** The operator's domain; "" is ai.onnx. */
  readonly domain: string;
  readonly provider: string;
  /** The kernel that runs it. */
  readonly kernel: string;
  /** The reason why it is not on the first provider, or "". */
  readonly reason: string;
  /** The names of the model's nodes from which it was made. */
  readonly origin: readonly string[];
}
