// The steps applied to a product's values before they are stored, to those of Softmax and to normalized ones: the
// program of the attribute `epilogue` (program.ts).
// Register 0 is the value with its bias, register 1 the residual: input 3, of the result's shape. An instruction Bias
// of a MatMul or MatMulNBits is its bias, which register 0 then does not include.
import type { Attributes } from '../../../contract/attributes';
import { type Context, KernelError, type Tensor, type Uniforms } from '../../../contract/kernel';
import { SCALAR_FUNCTIONS } from '../../../schema/scalar_functions';
import { type Lanes, laneType } from './lanes';
import { type MathName, mathFunctions } from './math';
import { type Instruction, parse, type Program, programFunctions } from './program';
import { PIECEWISE } from './scalar_functions';
import { Dialect, Place } from '../../../schema/dialect';

const VALUE = 0;
const RESIDUAL = 1;
const FIRST = 2;
/** With the residual added last; the epilogue does not read it yet. */
export function residualLast({ instructions, numbers }: Program = { instructions: [], numbers: [] }): Program {
  const value = instructions.length === 0 ? VALUE : FIRST + instructions.length - 1;
  return { instructions: [...instructions, { op: 'Add', registers: [value, RESIDUAL], numbers: 0 }], numbers };
}

/** Only adds the residual. */
export const SUM: Program = residualLast();

export function readEpilogue(attributes: Attributes, name = Dialect.EPILOGUE): Program | undefined {
  const text = attributes.text(name, '');
  return text ? parse(text) : undefined;
}

/** The epilogue of com.microsoft's operators, from their `activation`. */
export function epilogueOf(activation: string, given: readonly number[]): Program | undefined {
  if (activation === '' || activation === 'Identity') return undefined;
  const found = SCALAR_FUNCTIONS.find((row) => row.name === activation && row.ends);
  if (!found) throw new KernelError(`no fused activation is called ${activation}`, true);
  const numbers = Object.values(found.parameters).map((value, i) => given[i] ?? value);
  return programOf({ function: { op: found.name, numbers } });
}

export function readsResidual(instructions: readonly Instruction[] = []): boolean {
  return instructions.some(({ registers }) => registers.includes(RESIDUAL));
}

export function readsBias(instructions: readonly Instruction[] = []): boolean {
  return instructions.some(({ op }) => op === 'Bias');
}

/**
 * The node's residual, which exists exactly if the epilogue reads it. It is not broadcast: it has the result's shape
 * `dims`, or its columns have.
 */
export function residualOf(
  ctx: Context,
  epilogue: Program | undefined,
  dims: readonly number[],
  columns: readonly number[] = [],
): Tensor | undefined {
  const residual = ctx.inputs[Place.PRODUCT_RESIDUAL];
  const wanted = readsResidual(epilogue?.instructions);
  if (wanted && !residual) throw new KernelError('the epilogue reads a residual, input 3');
  if (!wanted && residual) throw new KernelError('input 3 is a residual that the epilogue does not read');
  const own = residual && (columns.length === 0 ? residual.dims : [...residual.dims.slice(0, -1), columns[1]]);
  if (own && `${own}` !== `${dims}`)
    throw new KernelError(`the residual of shape [${own}] is not shaped like the result: [${dims}]`);
  return residual;
}

/** With the residual added first; the epilogue does not read it yet. */
export function residualFirst(epilogue: Program | undefined): Program {
  const { instructions, numbers } = epilogue ?? { instructions: [], numbers: [] };
  const moved = (register: number) => (register === VALUE ? FIRST : register + 1);
  return {
    instructions: [
      ...SUM.instructions,
      ...instructions.map((each) => ({ ...each, registers: each.registers.map(moved) })),
    ],
    numbers,
  };
}

/** The form of nearly all epilogues: the residual first or last, one function, a number added to its result. */
export interface Form {
  readonly residual?: 'first' | 'last';
  readonly function?: { readonly op: string; readonly numbers: readonly number[] };
  readonly offset?: number;
}

/** Undefined for a program of another form. */
export function recognized({ instructions, numbers }: Program): Form | undefined {
  const form: { -readonly [key in keyof Form]: Form[key] } = {};
  let [value, at] = [VALUE, 0];
  let number: { readonly register: number; readonly value: number } | undefined;
  for (const [i, { op, registers, numbers: count }] of instructions.entries()) {
    const own = numbers.slice(at, at + count);
    at += count;
    const adds = (register?: number) => op === 'Add' && `${registers}` === `${[value, register]}`;
    if (op === 'Number' && !number) {
      number = { register: FIRST + i, value: own[0] };
      continue;
    }
    const begun = form.function !== undefined || form.offset !== undefined;
    if (adds(RESIDUAL) && !form.residual) form.residual = begun ? 'last' : 'first';
    else if (form.residual === 'last') return undefined;
    else if (adds(number?.register) && form.offset === undefined) form.offset = number!.value;
    else if (!begun && `${registers}` === `${value}` && SCALAR_FUNCTIONS.some((row) => row.name === op))
      form.function = { op, numbers: own };
    else return undefined;
    value = FIRST + i;
  }
  return value === FIRST + instructions.length - 1 && (number === undefined) === (form.offset === undefined)
    ? form
    : undefined;
}

/** The program of a form. */
export function programOf({ residual, function: found, offset }: Form): Program {
  const instructions: Instruction[] = [];
  let value = VALUE;
  const add = (op: string, registers: readonly number[], numbers = 0) => {
    instructions.push({ op, registers, numbers });
    value = FIRST + instructions.length - 1;
  };
  if (residual === 'first') add('Add', [value, RESIDUAL]);
  if (found) add(found.op, [value], found.numbers.length);
  if (offset !== undefined) {
    const before = value;
    add('Number', [], 1);
    add('Add', [before, value]);
  }
  if (residual === 'last') add('Add', [value, RESIDUAL]);
  return { instructions, numbers: [...(found?.numbers ?? []), ...(offset === undefined ? [] : [offset])] };
}

/** The numbers of PIECEWISE with which it is the identity. Without a clamp there are no bounds. */
const NOTHING = [1, -0, -Infinity, Infinity, 0];

/** The numbers with which it is a function; undefined for functions that are not piecewise linear. */
function pieces({ op, numbers }: { readonly op: string; readonly numbers: readonly number[] }): number[] | undefined {
  const row = SCALAR_FUNCTIONS.find(({ name }) => name === op);
  if (!row || row.piecewise.length === 0) return undefined;
  const names = Object.keys(row.parameters);
  return row.piecewise.map((piece) => (typeof piece === 'number' ? piece : numbers[names.indexOf(piece)]));
}

/**
 * The epilogue in a form that shares its shader with others and with no epilogue, if there is such a form: fewer
 * shaders to compile. It reads a residual, which is 0 if there is none.
 */
export function shared(epilogue: Program | undefined): Program {
  const form = epilogue ? recognized(epilogue) : {};
  if (!form) return epilogue!;
  const made = form.function ? pieces(form.function) : NOTHING;
  const { residual = 'first' } = form;
  return programOf({ ...form, residual, ...(made && { function: { op: PIECEWISE.name, numbers: made } }) });
}

/** WGSL of the functions that `ended` calls, for `lanes` lanes, and of further functions. */
export function epilogueText(
  program: readonly Instruction[] | undefined,
  lanes: Lanes,
  wanted: readonly MathName[] = [],
): string {
  if (!program) return mathFunctions(...wanted);
  const inputs = ['F', 'F', 'F'].slice(0, readsBias(program) ? 3 : readsResidual(program) ? 2 : 1);
  const written = `${programFunctions([{ name: 'epilogue', program, inputs, first: FIRST, result: 'F' }], wanted)}\n`;
  const types = { F: 'f32', I: 'i32', U: 'u32', B: 'bool' } as const;
  return written.replace(/\b[FIUB]\b/g, (name) => laneType(types[name as keyof typeof types], lanes));
}

/** WGSL of the epilogue of a sum; `residual` and `bias` are ignored if the program does not read them. */
export function ended(
  program: readonly Instruction[] | undefined,
  sum: string,
  residual?: string,
  bias?: string,
): string {
  if (!program) return sum;
  const given = readsBias(program) ? [sum, residual ?? bias, bias] : readsResidual(program) ? [sum, residual] : [sum];
  return `epilogue(${given.join(', ')})`;
}

/** The uniforms that `epilogueText` reads; all of them are f32. */
export function epilogueUniforms(epilogue: Program | undefined): Uniforms {
  return epilogue && epilogue.numbers.length > 0 ? { number: epilogue.numbers } : {};
}

/** Names for Dispatch.f32: packUniforms takes a field by its name without the index. */
export const EPILOGUE_F32 = ['number'];
