// ElementwiseChain: several elementwise operators in one dispatch, by the attribute `program` (wgsl/program.ts). With
// `reduction`, a Reduce operator, the results are reduced along `axes` right away, and the program `finish` runs on
// them (reduced.ts). With `perm` they are transposed.
import type { Context, Kernel, Spec, Tensor } from '../../../../../contract/kernel';
import {
  bindsWhole,
  broadcastDims,
  computeType,
  elementwise,
  elementwiseShader,
  FLOATS,
  permute,
  permutesInBlocks,
  sizeOf,
} from '../../../wgsl';
import { DType } from '../../../../../schema';
import { wordsOf, wordText } from '../../shared/byte_words';
import { columnsOf } from '../../shared/columns';
import { computeColumns } from './columns';
import { forDevice, type Instruction, parse, type Program, programFunctions } from '../../../wgsl/program';
import { reduceProgram, type Reduction } from './reduced';
import { Dialect } from '../../../../../schema/dialect';

interface ChainSpec extends Spec {
  readonly program: readonly Instruction[];
}

interface Chain extends Program {
  /** Absent if nothing is reduced. */
  readonly reduced?: Reduction;
  /** [first, count] of each input; empty: all. */
  readonly columns: readonly number[];
  readonly perm?: readonly number[];
}

const shader = elementwiseShader<ChainSpec>('elementwise_chain', ({ program, operands, words }) => {
  const inputs = operands.map(({ name }) => `T_${name}`);
  const word = `fn word(value: R) -> u32 { return ${wordText(program, 'value')}; }`;
  return programFunctions([{ name: 'apply', program, inputs, result: 'R' }]) + (words ? word : '');
});

/** The program on one or more tensors, which are broadcast, into `y`. */
function computeProgram(
  ctx: Context,
  { instructions, numbers }: Program,
  inputs: readonly Tensor[],
  y: Tensor,
  perm?: readonly number[],
  words?: Tensor,
): void {
  elementwise(ctx, shader, Object.fromEntries(inputs.map((input, i) => [`x${i}`, input])), y, {
    spec: { program: instructions },
    uniforms: numbers.length > 0 ? { number: numbers } : {},
    f32: ['number'],
    perm,
    words,
  });
}

/** True if another dispatch, for a transposition in blocks of 4x4, is faster than reading one element at a time. */
function inBlocks({ device }: Context, dims: readonly number[], perm: readonly number[]): boolean {
  return (device.software || sizeOf(dims) > 1 << 18) && permutesInBlocks(dims, perm);
}

const elementwiseChain: Kernel<Chain> = {
  op: Dialect.ELEMENTWISE_CHAIN,
  domain: Dialect.INTERNAL_DOMAIN,
  types: [[...FLOATS, 'int32', 'int64', 'bool']],
  features: ['columns', 'perm', 'words'],
  attributes(given) {
    const [op, finish] = [given.text(Dialect.REDUCTION, ''), given.text(Dialect.FINISH, '')];
    const reduced = op
      ? {
          op,
          axes: given.integers('axes'),
          keepdims: given.integer('keepdims', 1) !== 0,
          finish: finish ? parse(finish) : undefined,
        }
      : undefined;
    const perm = given.has('perm') ? given.integers('perm') : undefined;
    return { ...parse(given.text(Dialect.PROGRAM, '')), reduced, columns: given.integers(Dialect.X_COLUMNS), perm };
  },
  resolve(ctx, { columns: given, reduced, perm, ...own }) {
    const chain = forDevice(own, ctx.device);
    const inputs = ctx.inputs.map((_, i) => ctx.input(i));
    const dtype = inputs.find(({ storage }) => computeType(storage) === 'f32')?.dtype ?? DType.float32;
    if (given.length > 0) {
      const columns = inputs.map((input, i) => columnsOf(input, given.slice(2 * i, 2 * i + 2)));
      return computeColumns(
        ctx,
        chain,
        inputs,
        columns,
        ctx.output(0, [...inputs[0].dims.slice(0, -1), columns[0].count], dtype),
      );
    }
    if (!reduced) {
      const dims = broadcastDims(...inputs.map((input) => input.dims));
      const y = ctx.output(0, perm ? perm.map((axis) => dims[axis]) : dims, dtype);
      const whole = [y, ...inputs].every((tensor) => bindsWhole(tensor, ctx.device));
      const words = wordsOf(ctx, y, !perm && whole && dims[dims.length - 1] % 4 === 0);
      if (!perm || (whole && !inBlocks(ctx, dims, perm))) return computeProgram(ctx, chain, inputs, y, perm, words);
      const made = ctx.temp(dims, dtype);
      computeProgram(ctx, chain, inputs, made);
      return permute(ctx, made, dims, perm, y);
    }
    const finish = reduced.finish && forDevice(reduced.finish, ctx.device);
    reduceProgram(ctx, chain, { ...reduced, finish }, inputs, dtype, (program, x, y) =>
      computeProgram(ctx, program, [x], y),
    );
  },
};

export default [elementwiseChain];
