// A user's elementwise formula: the base of the page's own elementwise operators, with the user's text in it.
import { DType } from '../../../schema';
import type { Shader } from '../../../contract/kernel';
import {
  computeType,
  type ComputeType,
  elementwise,
  type ElementwiseSpec,
  elementwiseShader,
  laneType,
  mathFunctions,
  narrowType,
  wrapped,
} from '../wgsl';
import { libraryOf } from './helpers';
import { shaderStem, type UserCall } from './call';

interface FormulaSpec extends ElementwiseSpec {
  readonly text: string;
  readonly isBool: boolean;
  readonly functions: string;
  readonly helpers: string;
  /** The type of computations. */
  readonly scalar: ComputeType;
  /** The result's dtype if a number must be converted to it: bool, or a narrow integer. */
  readonly result_dtype?: DType;
}

function shaderOf(stem: string, functions: string): Shader<FormulaSpec> {
  return { ...elementwiseShader<FormulaSpec>(stem, formulaText), own: functions || undefined };
}

function formulaText(spec: FormulaSpec): string {
  const { text, functions, helpers, operands, lanes, scalar, isBool, result_dtype } = spec;
  const library = libraryOf(`${functions}\n${helpers}\n${text}`);
  const value = isBool || result_dtype !== DType.bool_ ? text : `${text} != C(S(0))`;
  const result = `R(${value})`;
  return `alias S = ${scalar}; alias C = ${laneType(scalar, lanes)};
${mathFunctions(...library)}
${functions}
${helpers}
fn apply(${operands.map(({ name }) => `${name}: T_${name}`).join(', ')}) -> R {
${operands.map(({ name }) => `  let ${name.slice(PREFIX.length)} = C(${name});`).join('\n')}
  return ${wrapped(result_dtype === DType.bool_ ? undefined : result_dtype, result)};
}`;
}

/** Operands are bound under their names with this prefix: the user's names are those of values. */
const PREFIX = 'in_';

export function dispatchExpression(call: UserCall): void {
  const { ctx, definition, inputs, outputs, uniforms, f32, i32 } = call;
  const tensors = Object.values(inputs);
  const [output] = Object.values(outputs);
  const types = tensors.map(({ storage }) => computeType(storage));
  const whole = types.every((type) => type !== 'f32') && computeType(output.storage) !== 'f32';
  const { text, isBool, functions, helpers } = definition;
  elementwise(
    ctx,
    shaderOf(shaderStem(definition), functions),
    Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [PREFIX + name, tensor])),
    output,
    {
      spec: {
        text,
        isBool,
        functions,
        helpers,
        scalar: whole ? types[0] : 'f32',
        result_dtype: output.dtype === DType.bool_ ? DType.bool_ : narrowType(output.dtype),
      } as FormulaSpec,
      uniforms,
      f32,
      i32,
    },
  );
}
