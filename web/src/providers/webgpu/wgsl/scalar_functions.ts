// WGSL of the functions of py_ort/schema/scalar_functions.py.
import { KernelError } from '../../../contract/kernel';
import { SCALAR_FUNCTIONS, type ScalarFunction } from '../../../schema/scalar_functions';

/**
 * All functions that consist of a product and a clamp, in one text: x, or with `gated` its product, between bounds. NaN
 * and -0 are unchanged.
 */
export const PIECEWISE: ScalarFunction = {
  name: 'Piecewise',
  kind: 'piecewise',
  domains: [],
  types: 'floats',
  parameters: { scale: 1, shift: -0, low: -Infinity, high: Infinity, gated: 0 },
  wgsl: 'select(F(1.0), x, gated > 0.5) * bounded(x * scale + F(shift), F(low), F(high))',
  math: ['bounded'],
  integer: '',
  unsigned: '',
  ends: false,
  gate: false,
  piecewise: ['scale', 'shift', 'low', 'high', 'gated'],
};

export function scalarFunction(name: string): ScalarFunction {
  const found = name === PIECEWISE.name ? PIECEWISE : SCALAR_FUNCTIONS.find((row) => row.name === name);
  if (!found) throw new KernelError(`no function is called ${name}`, true);
  return found;
}

/** The function's expression of x: F, with the `text` of each of its parameters, which are f32. */
export function withParameters(
  { parameters, wgsl }: ScalarFunction,
  text: (name: string, i: number, value: number) => string,
): string {
  return Object.entries(parameters).reduce(
    (expression, [name, value], i) => expression.replace(new RegExp(`\\b${name}\\b`, 'g'), text(name, i, value)),
    wgsl,
  );
}

/** The name of functionText's function. */
export function functionName({ kind }: ScalarFunction): string {
  return `scalar_${kind}`;
}

/** WGSL of the function of x: F and the parameters, f32; it needs its row's `math`. */
export function functionText(row: ScalarFunction): string {
  const parameters = ['x: F', ...Object.keys(row.parameters).map((name) => `${name}: f32`)];
  return `fn ${functionName(row)}(${parameters.join(', ')}) -> F { return ${row.wgsl}; }`;
}
