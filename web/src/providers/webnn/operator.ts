// What an operator is to WebNN: a file of operators/ default-exports an array of them.
import type { Attributes } from '../../contract/attributes';
import type { DTypeName, Feature, Requirement, Tensor } from '../../contract/kernel';
import type { DType } from '../../schema';
import type { Formula } from './formula';
import type { MlOperand } from './ml';

/** A node with the types and shapes of its inputs. */
export interface Call {
  readonly attributes: Attributes;
  /** Undefined where omitted. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly wants: readonly boolean[];
  /** The elements of a host input; undefined where it is omitted. */
  data(input: number): readonly number[] | undefined;
}

/** Adds to a graph what the node computes; `x`: of its inputs those on the device. */
export type Emit = (f: Formula, x: readonly MlOperand[]) => MlOperand | readonly MlOperand[];

export interface MlOperator {
  readonly op: string;
  /** "" is ai.onnx. */
  readonly domain?: string;
  /** As of kernels (contract/kernel.ts): of each input on the device, the last entry stands for all further ones. */
  readonly types: readonly (readonly DTypeName[])[];
  readonly requires?: readonly Requirement[];
  readonly features?: readonly Feature[];
  /** Of outputs, where WebNN's own type is another one. */
  readonly result?: (call: Call) => DType;
  emit(call: Call): Emit;
}

export const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
