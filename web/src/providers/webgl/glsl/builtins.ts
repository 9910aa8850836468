// WGSL's functions in GLSL ES 3.00.
import type { Type } from './types';

interface Builtin {
  /** Its name in GLSL, where that is another one. */
  readonly name?: string;
  /** The type of what it gives: that of its arguments by default. */
  readonly result?: (argument: Type) => Type;
}

const SAME: Builtin = {};
const one = ({ scalar }: Type): Type => ({ scalar, lanes: 1 });
const named = (name: string): Builtin => ({ name });

/** All arguments of one scalar type. */
export const BUILTINS: { readonly [name: string]: Builtin } = {
  ...Object.fromEntries(
    (
      'abs sign min max clamp floor ceil fract trunc sqrt exp exp2 log log2 pow sin cos tan asin acos atan sinh cosh ' +
      'tanh asinh acosh atanh mix step smoothstep normalize reflect cross'
    )
      .split(' ')
      .map((name) => [name, SAME]),
  ),
  round: named('roundEven'),
  inverseSqrt: named('inversesqrt'),
  atan2: named('atan'),
  fma: named('fused'),
  saturate: named('saturated'),
  select: named('chosen'),
  any: { result: one },
  all: { result: one },
  dot: { result: one, name: 'inner' },
  length: { result: one },
  distance: { result: one },
  unpack2x16float: { name: 'unpackHalf2x16', result: () => ({ scalar: 'f32', lanes: 2 }) },
  pack2x16float: { name: 'packHalf2x16', result: () => ({ scalar: 'u32', lanes: 1 }) },
  countOneBits: named('ones'),
  firstLeadingBit: named('leading'),
};

/** Functions of GLSL's in the type of each width, T; B is a truth, U and I are integers, F a float. */
const EACH = `
T chosen(T no, T yes, bool test) { return test ? yes : no; }
T chosen_each(T no, T yes, B test) { return CHOSEN; }
`;
const FLOAT = `
U to_u(F x) { return U(clamp(x, F(0.0), F(4294967040.0))); }
I to_i(F x) { return I(clamp(x, F(-2147483648.0), F(2147483520.0))); }
F modulo(F a, F b) { return a - b * trunc(a / b); }
F saturated(F x) { return clamp(x, F(0.0), F(1.0)); }
F split(F x) { F t = x * F(4097.0); return t - (t - x); }
F fused(F a, F b, F c) {
  F p = a * b; F ah = split(a); F bh = split(b); F al = a - ah; F bl = b - bh;
  F e = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  return (p + c) + e;
}
B both(B a, B b) { return BOTH; }
B either(B a, B b) { return EITHER; }
I modulo(I a, I b) { return a - a / b * b; }
U ones(U x) {
  x = x - ((x >> 1u) & U(0x55555555u)); x = (x & U(0x33333333u)) + ((x >> 2u) & U(0x33333333u));
  return (((x + (x >> 4u)) & U(0x0f0f0f0fu)) * U(0x01010101u)) >> 24u;
}
`;
const INNER = `
float inner(F a, F b) { return dot(a, b); }
int inner(I a, I b) { return INNER; }
uint inner(U a, U b) { return INNER; }
`;

const WIDTHS = [1, 2, 3, 4] as const;
const vector = (one: string, several: string, lanes: number) => (lanes === 1 ? one : `${several}${lanes}`);

function ofWidth(lanes: number): string {
  const types = {
    F: vector('float', 'vec', lanes),
    I: vector('int', 'ivec', lanes),
    U: vector('uint', 'uvec', lanes),
    B: vector('bool', 'bvec', lanes),
  };
  const each = (text: (lane: string) => string) =>
    lanes === 1 ? text('') : `T(${[...'xyzw'.slice(0, lanes)].map((lane) => text(`.${lane}`)).join(', ')})`;
  const inType = (text: string, type: string) => text.replace(/\bT\b/g, type);
  const chosen = EACH.replace(
    'CHOSEN',
    each((lane) => `test${lane} ? yes${lane} : no${lane}`),
  );
  const products = [...'xyzw'.slice(0, lanes)].map((lane) => `a.${lane} * b.${lane}`).join(' + ');
  const text = [
    ...Object.values(types).map((type) => inType(chosen, type)),
    inType(
      FLOAT.replace(
        'BOTH',
        each((lane) => `a${lane} && b${lane}`),
      ).replace(
        'EITHER',
        each((lane) => `a${lane} || b${lane}`),
      ),
      types.B,
    ),
    lanes === 1 ? '' : INNER.replaceAll('INNER', products),
  ].join('\n');
  return text.replace(/\b[FIUB]\b/g, (name) => types[name as keyof typeof types]);
}

/** Function definitions of the prelude, by name; those of one name together. */
const DEFINITIONS = new Map<string, string[]>();
for (const lanes of WIDTHS)
  for (const text of ofWidth(lanes).split(/\n(?=\w+ \w+\()/)) {
    const name = /^\s*\w+ (\w+)\(/.exec(text)?.[1];
    if (name) DEFINITIONS.set(name, [...(DEFINITIONS.get(name) ?? []), text.trim()]);
  }

/** The definitions that a text calls, and those that these call. */
export function prelude(text: string): string {
  const needed = new Map<string, string>();
  const look = (code: string): void => {
    for (const [name, texts] of DEFINITIONS)
      if (!needed.has(name) && new RegExp(`\\b${name}\\(`).test(code)) {
        needed.set(name, '');
        const all = texts.join('\n');
        look(all.replaceAll(`${name}(`, ''));
        needed.delete(name);
        needed.set(name, all);
      }
  };
  look(text);
  return [...needed.values()].join('\n');
}
