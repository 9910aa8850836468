// Uniforms read once. A software adapter loads u.field anew at each use, at the price of several multiplications; loops over pixels
// and taps use a dozen of them.

/** The module with the uniforms that `main` uses in constants at its beginning. */
export function hoistUniforms(module: string): string {
  const start = module.indexOf('fn main(');
  const body = module.indexOf('{', start) + 1;
  const text = module.slice(body);
  const names = [...new Set([...text.matchAll(/\bu\.(\w+)/g)].map(([, name]) => name))];
  const lets = names.map((name) => `let uniform_${name} = u.${name};`).join(' ');
  return `${module.slice(0, body)}\n  ${lets}${text.replace(/\bu\.(\w+)/g, 'uniform_$1')}`;
}
