// What a model says of its inputs and outputs.
import type { NodeArgEntry } from '../package/header';
import { typeInOnnx } from './elements';
import type { TensorType } from './tensor_types';

/** Of an input or output; `shape` has a name, or "" if there is none, where a size is open. */
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
}

export function metadataOf({ name, type, dims }: NodeArgEntry): ValueMetadata {
  const found = typeInOnnx(type);
  if (!found) return { name, isTensor: false };
  return { name, isTensor: true, type: found, shape: (dims ?? []).map((dim) => dim ?? '') };
}
