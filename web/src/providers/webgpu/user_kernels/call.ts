// A call of a user's kernel, for the functions that dispatch it.
import type { Context, Tensor, Uniforms } from '../../../contract/kernel';
import type { UserDefinition } from './definition';
import type { Env } from './sizes';

/** One call of a user's kernel: its tensors by name, and the values used in its expressions of sizes. */
export interface UserCall {
  readonly ctx: Context;
  readonly definition: UserDefinition;
  /** The inputs on the GPU, in order, without omitted ones. */
  readonly inputs: { readonly [name: string]: Tensor };
  readonly outputs: { readonly [name: string]: Tensor };
  readonly env: Env;
  readonly uniforms: Uniforms;
  /** The floats, and the signed integers among them. */
  readonly f32: readonly string[];
  readonly i32: readonly string[];
}

/** RowSum -> row_sum_user: its name in labels and profiles. */
export function shaderStem({ op }: UserDefinition): string {
  return `${op.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toLowerCase()}_user`;
}
