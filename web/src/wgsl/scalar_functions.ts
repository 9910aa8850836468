// WGSL of the functions of py_ort/schema/scalar_functions.py.
import { SCALAR_FUNCTIONS, type ScalarFunction } from '../schema/scalar_functions';

export function scalarFunction(name: string): ScalarFunction {
  const found = SCALAR_FUNCTIONS.find((row) => row.name === name);
  if (!found) throw new Error(`no function is called ${name}`);
  return found;
}

/** The function's expression of x: F, with `text` of each of its parameters, which is an f32. */
export function withParameters(
  { parameters, wgsl }: ScalarFunction,
  text: (name: string, i: number, value: number) => string,
): string {
  return Object.entries(parameters).reduce(
    (expression, [name, value], i) => expression.replace(new RegExp(`\\b${name}\\b`, 'g'), text(name, i, value)),
    wgsl,
  );
}

/** By which functionText's function is called. */
export function functionName({ kind }: ScalarFunction): string {
  return `scalar_${kind}`;
}

/** WGSL of the function of x: F and the parameters, f32; it needs its row's `math`. */
export function functionText(row: ScalarFunction): string {
  const parameters = ['x: F', ...Object.keys(row.parameters).map((name) => `${name}: f32`)];
  return `fn ${functionName(row)}(${parameters.join(', ')}) -> F { return ${row.wgsl}; }`;
}
