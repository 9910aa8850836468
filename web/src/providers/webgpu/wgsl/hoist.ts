// Reads uniforms once. A software adapter loads u.field again at each use, at the cost of several multiplications;
// loops over pixels and taps use a dozen of them.

/** The module, with the uniforms that `main` uses in constants at its start. */
export function hoistUniforms(module: string): string {
  // Comments may contain braces; their replacements have the same length.
  const code = module.replace(/\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (comment) => ' '.repeat(comment.length));
  const entry = /\bfn\s+main\s*\(/.exec(code);
  if (!entry) return module;
  const start = code.indexOf('{', entry.index) + 1;
  const end = closingBrace(code, start);
  const body = module.slice(start, end);
  const names = [...new Set([...body.matchAll(/\bu\.(\w+)/g)].map(([, name]) => name))];
  if (names.length === 0) return module;
  const lets = names.map((name) => `let uniform_${name} = u.${name};`).join(' ');
  return `${module.slice(0, start)}\n  ${lets}${body.replace(/\bu\.(\w+)/g, 'uniform_$1')}${module.slice(end)}`;
}

/** The end of the block whose inside begins at `start`. */
function closingBrace(text: string, start: number): number {
  let depth = 1;
  for (let i = start; i < text.length; i++) {
    if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return i;
  }
  return text.length;
}
