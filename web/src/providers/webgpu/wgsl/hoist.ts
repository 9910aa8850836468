// Reads uniforms once. A software adapter loads u.field again at each use, at the cost of several multiplications;
// loops over pixels and taps use a dozen of them.
import { matchingBrackets, tokensOf } from './tokens';

/** The module, with the uniforms that `main` uses in constants at its start. */
export function hoistUniforms(module: string): string {
  const tokens = tokensOf(module);
  const main = tokens.findIndex(({ text }, i) => text === 'main' && tokens[i - 1]?.text === 'fn');
  const open = tokens.findIndex(({ text }, i) => i > main && text === '{');
  const close = main < 0 ? undefined : matchingBrackets(tokens).get(open);
  if (close === undefined) return module;
  const start = tokens[open].start + 1;
  const end = tokens[close].start;
  const body = module.slice(start, end);
  const names = [...new Set([...body.matchAll(/\bu\.(\w+)/g)].map(([, name]) => name))];
  if (names.length === 0) return module;
  const lets = names.map((name) => `let uniform_${name} = u.${name};`).join(' ');
  return `${module.slice(0, start)}\n  ${lets}${body.replace(/\bu\.(\w+)/g, 'uniform_$1')}${module.slice(end)}`;
}
