// The program of an ElementwiseChain: an instruction for each operator, separated by semicolons: the operator, the registers it reads, and
// numbers with a # in front. Registers are the inputs, then the instructions' results, the last of which is the chain's; all are
// floats, truths 0 and 1.
import { KernelError } from '../../jsep/kernel';
import { type MathName, mathFunctions } from '../../wgsl';
import { unaryFunction } from '../unary';

export interface Instruction {
  readonly op: string;
  readonly registers: readonly number[];
  /** How many numbers it takes. */
  readonly numbers: number;
}

export interface Program {
  readonly instructions: readonly Instruction[];
  readonly numbers: readonly number[];
}

/** Operators of more than one register, and those that are not in unary.ts: expressions of a, b and c; m and n are numbers. */
const EXPRESSIONS: { readonly [op: string]: string } = {
  Add: 'a + b', Sub: 'a - b', Mul: 'a * b', Div: 'a / b', Cast: 'a', Number: 'F(m)', Clip: 'clamp(a, F(m), F(n))',
  Less: 'truth(a < b)', LessOrEqual: 'truth(a <= b)', Greater: 'truth(a > b)', GreaterOrEqual: 'truth(a >= b)', Equal: 'truth(a == b)',
  And: 'a * b', Or: 'max(a, b)', Not: '1.0 - a', Where: 'select(c, b, a != F(0.0))',
};

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

/** WGSL of `fn apply(x0: T_x0, …) -> R` and what it needs; the program's numbers are the uniforms number_0, number_1, … */
export function programFunctions(program: readonly Instruction[], inputs: number, provided: readonly MathName[] = []): string {
  const math = new Set<MathName>(provided);
  const functions = new Map<string, string>();
  const lines = Array.from({ length: inputs }, (_, i) => `  let r${i} = F(x${i});`);
  let number = 0;
  program.forEach(({ op, registers, numbers }, i) => {
    const uniforms = Array.from({ length: numbers }, () => `u.number_${number++}`);
    let value: string;
    if (op in EXPRESSIONS) {
      const names: { [name: string]: string } = Object.fromEntries(registers.map((register, k) => ['abc'[k], `r${register}`]));
      uniforms.forEach((uniform, k) => { names['mn'[k]] = uniform; });
      value = EXPRESSIONS[op].replace(/\b[abcmn]\b/g, (name) => names[name]);
    } else {
      const found = unaryFunction(op);
      if (!found) throw new KernelError(`ElementwiseChain of ${op}`, true);
      found.math.forEach((name) => math.add(name));
      functions.set(op, found.wgsl);
      value = `${found.name}(${[`r${registers[0]}`, ...uniforms].join(', ')})`;
    }
    lines.push(`  let r${inputs + i} = ${value};`);
  });
  const parameters = Array.from({ length: inputs }, (_, i) => `x${i}: T_x${i}`).join(', ');
  return `fn truth(b: B) -> F { return select(F(0.0), F(1.0), b); }
${mathFunctions(...math)}
${[...functions.values()].join('\n')}
fn apply(${parameters}) -> R {
${lines.join('\n')}
  return r${inputs + program.length - 1};
}`;
}
