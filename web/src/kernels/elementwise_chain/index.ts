// ElementwiseChain: several elementwise operators in one dispatch, by the attribute `program` (program.ts). With `reduction`, one of the
// Reduce operators, what they give is reduced along `axes` right away (reduced.ts).
import { type Kernel, type Spec } from '../../jsep/kernel';
import { broadcastElementwise, elementwiseShader, FLOATS } from '../../wgsl';
import { DType } from '../../schema';
import { type Instruction, parse, type Program, programFunctions } from './program';
import { reduceProgram } from './reduced';

interface ChainSpec extends Spec {
  readonly program: readonly Instruction[];
}

interface Chain extends Program {
  /** '' or a Reduce operator. */
  readonly reduction: string;
  readonly axes: readonly number[];
  readonly keepdims: boolean;
}

const shader = elementwiseShader<ChainSpec>('elementwise_chain', ({ program, operands }) => programFunctions(program, operands.length));

const elementwiseChain: Kernel<Chain> = {
  op: 'ElementwiseChain',
  domain: 'com.ms.internal',
  types: [[...FLOATS, 'int32', 'int64', 'bool']],
  attributes: (given) => ({
    ...parse(given.text('program', '')), reduction: given.text('reduction', ''), axes: given.integers('axes'), keepdims: given.integer('keepdims', 1) !== 0,
  }),
  resolve(ctx, chain) {
    const inputs = ctx.inputs.map((_, i) => ctx.input(i));
    const dtype = inputs.find((input) => input.dtype === DType.float32 || input.dtype === DType.float16)?.dtype ?? DType.float32;
    if (chain.reduction) return reduceProgram(ctx, chain, inputs, dtype);
    const { instructions, numbers } = chain;
    broadcastElementwise(ctx, shader, Object.fromEntries(inputs.map((input, i) => [`x${i}`, input])), {
      spec: { program: instructions }, uniforms: numbers.length > 0 ? { number: numbers } : {}, f32: ['number'], dtype,
    });
  },
};

export default [elementwiseChain];
