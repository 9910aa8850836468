// The functions of recurrent gates, by their ONNX names; their parameters are part of the text.
import { KernelError } from '../../../../contract/kernel';
import { SCALAR_FUNCTIONS } from '../../../../schema/scalar_functions';
import type { MathName } from '../../wgsl';
import { withParameters } from '../../wgsl/scalar_functions';

export interface GateFunction {
  /** An expression of x: F. */
  readonly text: string;
  /** Functions that it calls. */
  readonly math: readonly MathName[];
}

/** One for each name, in any case; parameters are assigned in order to the functions that have them. */
export function gateFunctions(
  names: readonly string[],
  alphas: readonly number[],
  betas: readonly number[],
): GateFunction[] {
  const given = [[...alphas], [...betas]];
  return names.map((name) => {
    const found = SCALAR_FUNCTIONS.find((row) => row.gate && row.name.toLowerCase() === name.toLowerCase());
    if (!found) throw new KernelError(`no activation of a recurrent layer is called ${name}`);
    return {
      text: withParameters(found, (_, i, otherwise) => `f32(${given[i].shift() ?? otherwise})`),
      math: found.math,
    };
  });
}
