// A call of a user's kernel, as the ways to dispatch it get it.
import type { Context, Tensor, Uniforms } from '../../../contract/kernel';
import type { UserDefinition } from './definition';
import type { Env } from './sizes';

/** One call of a user's kernel: its tensors by name, and what its expressions of sizes ask for. */
export interface UserCall {
  readonly ctx: Context;
  readonly definition: UserDefinition;
  /** The inputs on the GPU, in order; an omitted one is not there. */
  readonly inputs: { readonly [name: string]: Tensor };
  readonly outputs: { readonly [name: string]: Tensor };
  readonly env: Env;
  readonly uniforms: Uniforms;
  /** Those of them that are floats, and those that are signed. */
  readonly f32: readonly string[];
  readonly i32: readonly string[];
}

/** RowSum -> row_sum_user: what labels and profiles call it. */
export function shaderStem({ op }: UserDefinition): string {
  return `${op.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toLowerCase()}_user`;
}
