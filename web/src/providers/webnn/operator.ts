// The interface of a WebNN operator: a file of operators/ default-exports an array of them.
import type { Attributes } from '../../contract/attributes';
import type { DTypeName, Feature, Requirement, Tensor } from '../../contract/kernel';
import type { DType } from '../../schema';
import type { Formula } from './formula';
import type { MlOperand } from './ml';

/** A node with the types and shapes of its inputs. */
export interface Call {
  readonly attributes: Attributes;
  /** Undefined if omitted. */
  readonly inputs: readonly (Tensor | undefined)[];
  readonly wants: readonly boolean[];
  /** The elements of a host input; undefined if it is omitted. */
  data(input: number): readonly number[] | undefined;
}

/** Adds the node's operators to a graph; `x`: its inputs on the device. */
export type Emit = (f: Formula, x: readonly MlOperand[]) => MlOperand | readonly MlOperand[];

export interface MlOperator {
  readonly op: string;
  /** "" is ai.onnx. */
  readonly domain?: string;
  /** As for kernels (contract/kernel.ts): for each input on the device; the last entry applies to all further ones. */
  readonly types: readonly (readonly DTypeName[])[];
  readonly requires?: readonly Requirement[];
  readonly features?: readonly Feature[];
  /** Type of outputs, if WebNN's own type differs. */
  readonly result?: (call: Call) => DType;
  emit(call: Call): Emit;
}

export const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
