// A user's kernel in Python's declaration: plain data, in the plan (Plan.user_kernels) or with JsepCreateKernel.
import { ErrorCode } from '../../../schema';
import { messageOf, RuntimeError } from '../../../errors';
import type { DTypeName } from '../../../contract/kernel';
import type { Tree } from './sizes';

export interface UserInput {
  readonly name: string;
  readonly optional: boolean;
  /** True if its elements are read on the CPU, in the language of sizes. */
  readonly host: boolean;
}

export interface UserOutput {
  readonly name: string;
  /** A dtype, or the name of an input with the same dtype. */
  readonly dtype: DTypeName | string;
  readonly shape: Tree;
}

export type AttributeKind = 'i' | 'f' | 's' | 'is' | 'fs' | 'ss';
export type AttributeValue = number | string | readonly number[] | readonly string[];

export interface UserAttribute {
  readonly kind: AttributeKind;
  /** null: required. */
  readonly default: AttributeValue | null;
}

export interface UserUniform {
  readonly name: string;
  readonly type: 'u32' | 'i32' | 'f32';
  readonly value: Tree;
}

export interface UserConstant {
  readonly name: string;
  readonly value: Tree;
}

export interface UserDefinition {
  readonly domain: string;
  readonly op: string;
  readonly inputs: readonly UserInput[];
  readonly outputs: readonly UserOutput[];
  readonly attributes: { readonly [name: string]: UserAttribute };
  readonly form: 'expression' | 'body' | 'wgsl';
  /** WGSL; for an expression: in the aliases C (the type of computations), S (its scalar) and B. */
  readonly text: string;
  /** True if an expression has type B. */
  readonly isBool: boolean;
  /** The user's own functions. */
  readonly functions: string;
  /** Functions that the translation of an expression calls. */
  readonly helpers: string;
  readonly uniforms: readonly UserUniform[];
  readonly constants: readonly UserConstant[];
  readonly threads: Tree;
  readonly workgroups: readonly Tree[];
  readonly workgroupSize: number;
}

/** `json`: a list of definitions; empty for none. */
export function readDefinitions(json: string): UserDefinition[] {
  try {
    return json ? (JSON.parse(json) as UserDefinition[]) : [];
  } catch (error) {
    throw new RuntimeError(ErrorCode.invalid_graph, `the user kernels cannot be read: ${messageOf(error)}`);
  }
}
