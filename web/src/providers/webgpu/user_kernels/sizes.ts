// The language of sizes, on numbers. Python parses the text and computes the same trees with symbols
// (py_ort/user_kernels/sizes.py).
import { KernelError } from '../../../contract/kernel';
import { broadcastDims, sizeOf } from '../wgsl';

/** A number, or an operation on trees: ["+", 1, ["shape", "x"]]. */
export type Tree = number | string | null | readonly Tree[];
export type Value = number | string | readonly (number | string)[];

export interface Env {
  /** By tensor, without omitted ones. */
  readonly shapes: { readonly [name: string]: readonly number[] };
  readonly attributes: { readonly [name: string]: Value };
  /** The elements of a host input. */
  values(name: string): readonly number[];
}

type Items = readonly (number | string)[];
type Operation = (...values: never[]) => Value;

const divided = (a: number, b: number): number => {
  if (b === 0) throw new KernelError('division by zero');
  return a / b;
};
const floorDiv = (a: number, b: number): number => Math.floor(divided(a, b));

const OPERATIONS: { readonly [name: string]: Operation } = {
  '+': (a: number | Items, b: number | Items): Value =>
    Array.isArray(a) ? [...a, ...(b as Items)] : (a as number) + (b as number),
  '-': (a: number, b: number) => a - b,
  '*': (a: number, b: number) => a * b,
  '/': divided,
  '//': floorDiv,
  '%': (a: number, b: number) => a - b * floorDiv(a, b),
  '==': (a: Value, b: Value) => Number(String(a) === String(b)),
  '!=': (a: Value, b: Value) => Number(String(a) !== String(b)),
  '<': (a: number, b: number) => Number(a < b),
  '<=': (a: number, b: number) => Number(a <= b),
  '>': (a: number, b: number) => Number(a > b),
  '>=': (a: number, b: number) => Number(a >= b),
  not: (a: Value) => Number(!truth(a)),
  abs: Math.abs as Operation,
  ceil: Math.ceil as Operation,
  floor: Math.floor as Operation,
  ceil_div: (a: number, b: number) => Math.ceil(divided(a, b)),
  min: Math.min as Operation,
  max: Math.max as Operation,
  f32: (a: number) => a,
  i32: (a: number) => a,
  u32: (a: number) => a,
  len: (items: Items) => items.length,
  prod: (items: readonly number[]) => sizeOf(items),
  list: (...items: number[]) => items,
  broadcast: (...shapes: (readonly number[])[]) => broadcastDims(...shapes),
  at: (items: Items, index: number) => {
    const item = items.at(index);
    if (item === undefined) throw new KernelError(`index ${index} is outside of [${items}]`);
    return item;
  },
  slice: (items: Items, start: number | undefined, end: number | undefined) => items.slice(start, end),
};

function truth(value: Value): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

export function evaluate(tree: Tree, env: Env): Value {
  if (tree === null || typeof tree === 'string') throw new KernelError(`${tree} is no expression of sizes`);
  if (typeof tree === 'number') return tree;
  const [kind, ...parts] = tree as readonly [string, ...Tree[]];
  const name = parts[0] as string;
  switch (kind) {
    case 'text':
      return name;
    case 'attribute':
      return env.attributes[name];
    case 'present':
      return Number(name in env.shapes);
    case 'shape': {
      const shape = env.shapes[name];
      if (!shape) throw new KernelError(`input '${name}' is omitted`);
      return shape;
    }
    case 'values':
      return env.values(name);
    case 'if':
      return evaluate(truth(evaluate(parts[0], env)) ? parts[1] : parts[2], env);
    case 'and':
      return Number(parts.every((part) => truth(evaluate(part, env))));
    case 'or':
      return Number(parts.some((part) => truth(evaluate(part, env))));
  }
  const operation = OPERATIONS[kind];
  if (!operation) throw new KernelError(`the language of sizes has no '${kind}'`);
  return operation(...(parts.map((part) => (part === null ? undefined : evaluate(part, env))) as never[]));
}

/** An expression whose value is one number. */
export function evaluateNumber(tree: Tree, env: Env, what: string): number {
  const value = evaluate(tree, env);
  if (typeof value !== 'number' || Number.isNaN(value))
    throw new KernelError(`${what} is ${JSON.stringify(value)}, not a number`);
  return value;
}

/** An expression whose value is a list of sizes. */
export function evaluateShape(tree: Tree, env: Env, what: string): number[] {
  const value = evaluate(tree, env);
  if (!Array.isArray(value)) throw new KernelError(`${what} is ${JSON.stringify(value)}, not a list of sizes`);
  return value.map((dim) => {
    if (typeof dim !== 'number' || !Number.isInteger(dim) || dim < 0)
      throw new KernelError(`${what} is [${value}]: sizes are whole numbers`);
    return dim;
  });
}

const TRUTHS = new Set(['==', '!=', '<', '<=', '>', '>=', 'not', 'and', 'or', 'present']);

/** True if an expression is a condition. */
export function isTruth(tree: Tree): boolean {
  return Array.isArray(tree) && TRUTHS.has(tree[0] as string);
}
