// Types of WGSL's values, and their names in GLSL.
import { KernelError } from '../../../contract/kernel';
import type { TypeName } from './syntax';

/** int and float are those of literals, which become what is around them. */
export type Scalar = 'f32' | 'i32' | 'u32' | 'bool' | 'int' | 'float';

export interface Type {
  readonly scalar: Scalar;
  readonly lanes: number;
  /** Of an array: how many there are. */
  readonly count?: number;
  /** The name of a struct; `scalar` says nothing then. */
  readonly struct?: string;
}

const NAMES = { f32: ['float', 'vec'], i32: ['int', 'ivec'], u32: ['uint', 'uvec'], bool: ['bool', 'bvec'] } as const;
const SCALARS: { readonly [name: string]: Scalar } = { f32: 'f32', f16: 'f32', i32: 'i32', u32: 'u32', bool: 'bool' };
const SHORT: { readonly [letter: string]: Scalar } = { f: 'f32', h: 'f32', i: 'i32', u: 'u32' };

export const scalarType = (scalar: Scalar): Type => ({ scalar, lanes: 1 });
export const isAbstract = ({ scalar }: Type): boolean => scalar === 'int' || scalar === 'float';

/** The type without its array. */
export const elementOf = ({ scalar, lanes }: Type): Type => ({ scalar, lanes });

export function typeText(type: Type): string {
  const { scalar, lanes, count, struct } = concreteType(type);
  if (struct) return `m_${struct}`;
  const [one, several] = NAMES[scalar as keyof typeof NAMES];
  const name = lanes === 1 ? one : `${several}${lanes}`;
  return count === undefined ? name : `${name}[${count}]`;
}

/** Literals that nothing is around. */
export function concreteType(type: Type): Type {
  if (!isAbstract(type)) return type;
  return { ...type, scalar: type.scalar === 'int' ? 'i32' : 'f32' };
}

/**
 * The type that a name means; undefined if it is none. A struct is its own alias; a vector without the type of its
 * lanes has `scalar` int.
 */
export function namedType({ name, of }: TypeName, aliases: ReadonlyMap<string, TypeName>): Type | undefined {
  const alias = aliases.get(name);
  if (alias) return alias.name === name ? { ...scalarType('bool'), struct: name } : namedType(alias, aliases);
  if (Object.hasOwn(SCALARS, name)) return scalarType(SCALARS[name]);
  const vector = /^vec([234])([fhiu]?)$/.exec(name);
  if (vector) {
    const lanes = Number(vector[1]);
    if (vector[2]) return { scalar: SHORT[vector[2]], lanes };
    return { scalar: of.length > 0 ? typeOf(of[0], aliases).scalar : 'int', lanes };
  }
  if (name !== 'array' || of.length === 0) return undefined;
  return { ...typeOf(of[0], aliases), count: Number(of[1]) };
}

export function typeOf(name: TypeName | number, aliases: ReadonlyMap<string, TypeName>): Type {
  const found = typeof name === 'number' ? undefined : namedType(name, aliases);
  if (!found) throw new KernelError(`a shader's type ${JSON.stringify(name)} has no form in GLSL`, true);
  return found;
}
