// The tokens of WGSL, and what they say without a tree.

export interface Token {
  readonly text: string;
  readonly start: number;
}

const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const NUMBER = /0[xX][\w.]+(?:[pP][+-]?\w+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[iufh]?/;
const SIGN = /<<=|>>=|&&|\|\||\+\+|--|->|[-+*/%&|^=!<>]=|<<|>>|\S/;
const TOKEN = new RegExp(`${NUMBER.source}|[A-Za-z_]\\w*|${SIGN.source}`, 'g');
const CLOSING: { readonly [opening: string]: string } = { '(': ')', '[': ']', '{': '}' };
export const ASSIGNMENT = /^(?:[-+*/%&|^]|<<|>>)?=$/;
export const WORD = /^[A-Za-z_]/;

/** The text with spaces in place of comments, so that each token keeps its place. */
export function withoutComments(text: string): string {
  return text.replace(COMMENT, (comment) => comment.replace(/[^\n]/g, ' '));
}

export function tokensOf(text: string): Token[] {
  return [...withoutComments(text).matchAll(TOKEN)].map((match) => ({ text: match[0], start: match.index }));
}

/** For the place of each opening bracket that of the closing one. */
export function matchingBrackets(tokens: readonly Token[]): Map<number, number> {
  const brackets = new Map<number, number>();
  const open: number[] = [];
  tokens.forEach(({ text }, i) => {
    if (text in CLOSING) open.push(i);
    else if (open.length > 0 && text === CLOSING[tokens[open.at(-1)!].text]) brackets.set(open.pop()!, i);
  });
  return brackets;
}

/** The functions that a text calls and does not define. */
export function foreignCalls(text: string): ReadonlySet<string> {
  const words = tokensOf(text).map((token) => token.text);
  const own = new Set(words.filter((_, i) => words[i - 1] === 'fn'));
  return new Set(words.filter((word, i) => words[i + 1] === '(' && !own.has(word)));
}

/** The directives at the start of a module, which must stay there. */
export function directivesOf(module: string): string {
  return /^(\s*(enable|requires|diagnostic)\b[^;]*;)*/.exec(module)![0];
}
