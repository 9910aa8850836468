// Programs of elementwise steps (of an ElementwiseChain, of a product's epilogue): instructions separated by
// semicolons. Each has an operator, the registers it reads, and numbers after a #. Registers are the inputs, then the
// instructions' results; the last one is the program's. All are floats, truths are 0 and 1.
import { type DeviceTraits, KernelError } from '../../../contract/kernel';
import { division } from './division';
import { type MathName, mathFunctions } from './math';
import { functionName, functionText, scalarFunction } from './scalar_functions';

export interface Instruction {
  readonly op: string;
  readonly registers: readonly number[];
  /** The number of its numbers. */
  readonly numbers: number;
}

export interface Program {
  readonly instructions: readonly Instruction[];
  readonly numbers: readonly number[];
}

/**
 * Operators of more than one register, and those that are not scalar functions: expressions of a, b and c; m and n are
 * numbers.
 */
const EXPRESSIONS: { readonly [op: string]: string } = {
  Add: 'a + b',
  Sub: 'a - b',
  Mul: 'a * b',
  Div: 'a / b',
  Divided: 'divided(a, b)',
  Cast: 'a',
  Number: 'F(m)',
  Bias: 'F(x2)',
  Max: 'select(max(a, b), a + b, is_nan(a) | is_nan(b))',
  Min: 'select(min(a, b), a + b, is_nan(a) | is_nan(b))',
  Mod: 'remainder(a, b)',
  Pow: 'power(a, F(m))',
  PRelu: 'select(a * b, a, a >= F(0.0))',
  Less: 'truth(a < b)',
  LessOrEqual: 'truth(a <= b)',
  Greater: 'truth(a > b)',
  GreaterOrEqual: 'truth(a >= b)',
  Equal: 'truth(a == b)',
  And: 'a * b',
  Or: 'max(a, b)',
  Xor: 'truth(a != b)',
  Not: '1.0 - a',
  Where: 'select(c, b, a != F(0.0))',
  IsNaN: 'truth(is_nan(a))',
  IsInf: 'truth(is_infinite(a)) * select(F(n), F(m), a > F(0.0))',
};
const MATH: { readonly [op: string]: MathName | undefined } = {
  Max: 'is_nan',
  Min: 'is_nan',
  IsNaN: 'is_nan',
  IsInf: 'is_infinite',
  Mod: 'remainder',
  Pow: 'power',
  Divided: 'divided',
};

/** Throws for an instruction without valid WGSL, as in a damaged plan; `known`: the number of registers. */
function check({ op, registers, numbers }: Instruction, known: number, inputs: number): void {
  const expression = Object.hasOwn(EXPRESSIONS, op) ? EXPRESSIONS[op] : undefined;
  const used = (letters: string) =>
    [...letters].filter((letter) => expression && new RegExp(`\\b${letter}\\b`).test(expression)).length;
  const reads = expression ? used('abc') : 1;
  const takes = expression ? used('mn') : Object.keys(scalarFunction(op).parameters).length;
  const fits = registers.every((register) => Number.isInteger(register) && register >= 0 && register < known);
  if (!fits || registers.length < reads || numbers < takes || (op === 'Bias' && inputs < 3))
    throw new KernelError(`no instruction of a program: ${op} of registers [${registers}] and ${numbers} numbers`);
}

export function parse(text: string): Program {
  const numbers: number[] = [];
  const instructions = text.split(';').map((line) => {
    const [op, ...operands] = line.split(' ');
    const own = operands.filter((word) => word.startsWith('#')).map((word) => Number(word.slice(1)));
    numbers.push(...own);
    return { op, registers: operands.filter((word) => !word.startsWith('#')).map(Number), numbers: own.length };
  });
  return { instructions, numbers };
}

/** The program with divisions in the form for the device. */
export function forDevice({ instructions, numbers }: Program, device: DeviceTraits): Program {
  if (!division(device).helped) return { instructions, numbers };
  return { instructions: instructions.map((each) => (each.op === 'Div' ? { ...each, op: 'Divided' } : each)), numbers };
}

/** A program as a function of WGSL: NAME(x0: TYPE, …) -> RESULT. */
export interface ProgramFunction {
  readonly name: string;
  readonly program: readonly Instruction[];
  /** The types of its inputs. */
  readonly inputs: readonly string[];
  /** The register of the first result, if that does not follow the inputs'; inputs from it on have no register. */
  readonly first?: number;
  readonly result: string;
}

/**
 * WGSL of `functions` and of the functions that they need; the numbers of all their programs, in order, are the
 * uniforms number_0, number_1, …
 */
export function programFunctions(functions: readonly ProgramFunction[], provided: readonly MathName[] = []): string {
  const math = new Set<MathName>(provided);
  const unary = new Map<string, string>();
  let number = 0;
  const texts = functions.map(({ name, program, inputs, first = inputs.length, result }) => {
    const lines = inputs.slice(0, first).map((_, i) => `  let r${i} = F(x${i});`);
    program.forEach((instruction, i) => {
      const { op, registers, numbers } = instruction;
      check(instruction, first + i, inputs.length);
      const uniforms = Array.from({ length: numbers }, () => `u.number_${number++}`);
      let value: string;
      if (Object.hasOwn(EXPRESSIONS, op)) {
        const names: { [name: string]: string } = Object.fromEntries(
          registers.map((register, k) => ['abc'[k], `r${register}`]),
        );
        uniforms.forEach((uniform, k) => {
          names['mn'[k]] = uniform;
        });
        const needed = MATH[op];
        if (needed) math.add(needed);
        value = EXPRESSIONS[op].replace(/\b[abcmn]\b/g, (letter) => names[letter]);
      } else {
        const found = scalarFunction(op);
        found.math.forEach((each) => math.add(each));
        unary.set(op, functionText(found));
        value = `${functionName(found)}(${[`r${registers[0]}`, ...uniforms].join(', ')})`;
      }
      lines.push(`  let r${first + i} = ${value};`);
    });
    return `fn ${name}(${inputs.map((type, i) => `x${i}: ${type}`).join(', ')}) -> ${result} {
${lines.join('\n')}
  return r${first + program.length - 1};
}`;
  });
  const truth = 'fn truth(b: B) -> F { return select(F(0.0), F(1.0), b); }';
  return `${texts.some((text) => text.includes('truth(')) ? truth : ''}
${mathFunctions(...math)}
${[...unary.values()].join('\n')}
${texts.join('\n')}`;
}
