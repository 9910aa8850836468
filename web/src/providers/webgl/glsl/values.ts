// Expressions in GLSL: literals, which become of the type that is around them, and conversions.
import { KernelError } from '../../../contract/kernel';
import { elementOf, type Scalar, scalarType, type Type, typeText } from './types';

/** An expression in GLSL. */
export interface Value {
  readonly type: Type;
  readonly text: string;
  /** Of literals and what is made of them: the number of each lane. */
  readonly numbers?: readonly number[];
}

/** Of numbers. */
export const ARITHMETIC: { readonly [sign: string]: (a: number, b: number) => number } = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
  '<<': (a, b) => a * 2 ** b,
};

export function literal(text: string): Value {
  const suffix = /^0[xX]/.test(text) ? /[iu]$/.exec(text)?.[0] : /[iufh]$/.exec(text)?.[0];
  const number = Number(suffix ? text.slice(0, -1) : text);
  if (suffix === 'u' || suffix === 'i') {
    const type = scalarType(suffix === 'u' ? 'u32' : 'i32');
    return { type, text: constant(type, [number]) };
  }
  if (suffix) return { type: scalarType('f32'), text: constant(scalarType('f32'), [number]) };
  return numbers(scalarType(!/^0[xX]/.test(text) && /[.eE]/.test(text) ? 'float' : 'int'), [number]);
}

export function numbers(type: Type, all: readonly number[]): Value {
  return { type, numbers: all, text: '' };
}

export function folded(left: Value, right: Value, sign: string, apply: (a: number, b: number) => number): Value {
  const scalar = left.type.scalar === 'float' || right.type.scalar === 'float' ? 'float' : 'int';
  const lanes = Math.max(left.type.lanes, right.type.lanes);
  const at = (value: Value, i: number) => value.numbers![i % value.numbers!.length];
  const all = Array.from({ length: lanes }, (_, i) => apply(at(left, i), at(right, i)));
  return numbers({ scalar, lanes }, sign === '/' && scalar === 'int' ? all.map(Math.trunc) : all);
}

/** A literal of a concrete type. */
export function constant(type: Type, all: readonly number[]): string {
  const each = all.map((number) => {
    if (type.scalar === 'u32') return `${number >>> 0}u`;
    if (type.scalar === 'i32') return number === -(2 ** 31) ? 'int(0x80000000u)' : `${number}`;
    if (type.scalar === 'bool') return `${number !== 0}`;
    const text = Object.is(number, -0) ? '-0' : `${number}`;
    return /[.e]/.test(text) ? text : `${text}.0`;
  });
  if (type.lanes === 1) return each[0].startsWith('-') ? `(${each[0]})` : each[0];
  return `${typeText(type)}(${new Set(each).size === 1 ? each[0] : each.join(', ')})`;
}

export function zeros(type: Type): string {
  const one = constant(elementOf(type), new Array<number>(type.lanes).fill(0));
  if (type.count === undefined) return one;
  return `${typeText(type)}(${new Array<string>(type.count).fill(one).join(', ')})`;
}

/** The value with its lanes of another type. */
export function converted({ type: { scalar, lanes }, text }: Value, to: Scalar): string {
  if (scalar === to) return text;
  if (scalar === 'f32' && to === 'u32') return `to_u(${text})`;
  if (scalar === 'f32' && to === 'i32') return `to_i(${text})`;
  return `${typeText({ scalar: to, lanes })}(${text})`;
}

export function widened({ type: { scalar, lanes }, text }: Value, wanted: number): string {
  return lanes === wanted ? text : `${typeText({ scalar, lanes: wanted })}(${text})`;
}

export function truths(sign: string, a: string, b: string, lanes: number): string {
  if (sign === '^') return lanes === 1 ? `(${a} != ${b})` : `notEqual(${a}, ${b})`;
  const both = sign === '&' || sign === '&&';
  if (lanes === 1) return `(${a} ${both ? '&&' : '||'} ${b})`;
  return `${both ? 'both' : 'either'}(${a}, ${b})`;
}

export function unwritable(what: string): KernelError {
  return new KernelError(`a shader uses ${what}, which has no form in GLSL`, true);
}
