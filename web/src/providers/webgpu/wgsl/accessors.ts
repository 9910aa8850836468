// Arrays of a shader accessed through functions: NAME[i] becomes read_NAME(u32(i)), NAME[i] = v becomes
// write_NAME(u32(i), v), and one lane of a vector write_lane_NAME(u32(i), lane, v). Parameters and variables may shadow
// names, by WGSL's scopes.
import { KernelError } from '../../../contract/kernel';
import { ASSIGNMENT, matchingBrackets, type Token, tokensOf, withoutComments, WORD } from './tokens';

/** The new text, and the functions that each name needs. */
export interface AccessedText {
  readonly text: string;
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  readonly laneWrites: ReadonlySet<string>;
}

/** Possible ends of an operand, after which & is a binary operator. */
const OPERAND_END = /^[\w)\]]/;

export function accessThrough(module: string, names: readonly string[]): AccessedText {
  const text = withoutComments(module);
  const tokens = tokensOf(text);
  return new Rewriter(text, tokens, matchingBrackets(tokens), referencesTo(new Set(names), tokens)).rewritten();
}

interface Scope {
  readonly names: Set<string>;
  /** True for the scope of a for statement's header, which ends with the body. */
  readonly loop: boolean;
}

/**
 * The places of the tokens that refer to one of the names, not to a local variable, a member or a declaration of that
 * name.
 */
function referencesTo(names: ReadonlySet<string>, tokens: readonly Token[]): Set<number> {
  const references = new Set<number>();
  const scopes: Scope[] = [{ names: new Set(), loop: false }];
  const declare = (name: string) => scopes.at(-1)!.names.add(name);
  let parameters: string[] = [];
  let declared: string | undefined;
  for (let i = 0; i < tokens.length; i++) {
    const { text } = tokens[i];
    const before = tokens[i - 1]?.text;
    const after = tokens[i + 1]?.text;
    if (text === '{') {
      scopes.push({ names: new Set(parameters), loop: false });
      parameters = [];
    } else if (text === '}') {
      scopes.pop();
      if (scopes.at(-1)?.loop) scopes.pop();
    } else if (text === ';') {
      // Its own initializer refers to the earlier meaning of the name.
      if (declared !== undefined) declare(declared);
      declared = undefined;
    } else if (text === 'for') {
      scopes.push({ names: new Set(), loop: true });
    } else if (text === 'fn') {
      let depth = 0;
      for (i += 2; i < tokens.length; i++) {
        if (tokens[i].text === '(') depth++;
        else if (tokens[i].text === ')' && --depth === 0) break;
        else if (tokens[i + 1]?.text === ':') parameters.push(tokens[i].text);
      }
    } else if (text === 'struct') {
      while (i < tokens.length && tokens[i].text !== '}') i++;
    } else if (text === 'let' || text === 'const' || text === 'var') {
      let name = i + 1;
      if (tokens[name]?.text === '<') while (tokens[name++].text !== '>');
      declared = tokens[name]?.text;
      i = name;
    } else if (
      WORD.test(text) &&
      names.has(text) &&
      before !== '.' &&
      after !== ':' &&
      !scopes.some((scope) => scope.names.has(text))
    ) {
      references.add(i);
    }
  }
  return references;
}

class Rewriter {
  private readonly reads = new Set<string>();
  private readonly writes = new Set<string>();
  private readonly laneWrites = new Set<string>();

  constructor(
    private readonly text: string,
    private readonly tokens: readonly Token[],
    private readonly brackets: ReadonlyMap<number, number>,
    private readonly references: ReadonlySet<number>,
  ) {}

  rewritten(): AccessedText {
    const text = this.between(0, this.tokens.length);
    return {
      text: this.text.slice(0, this.tokens[0]?.start ?? 0) + text,
      reads: this.reads,
      writes: this.writes,
      laneWrites: this.laneWrites,
    };
  }

  /** The tokens from `begin` up to `end`, and the space after each. */
  private between(begin: number, end: number): string {
    let made = '';
    for (let i = begin; i < end; ) {
      if (this.references.has(i)) {
        const access = this.access(i);
        made += access.text;
        i = access.next;
      } else {
        made += this.text.slice(this.tokens[i].start, this.tokens[i + 1]?.start);
        i++;
      }
    }
    return made;
  }

  /** The replacement of an access, and the place where the text continues. */
  private access(i: number): { text: string; next: number } {
    const name = this.tokens[i].text;
    const close = this.brackets.get(i + 1);
    if (
      this.at(i + 1) !== '[' ||
      close === undefined ||
      (this.at(i - 1) === '&' && !OPERAND_END.test(this.at(i - 2)))
    ) {
      throw new KernelError(
        `a shader uses ${name} otherwise than as ${name}[…], so that it cannot be bound in parts`,
        true,
      );
    }
    const index = `u32(${this.between(i + 2, close)})`;
    const lane = this.lane(close + 1);
    const operator = lane?.next ?? close + 1;
    const step = this.at(operator) === '++' || this.at(operator) === '--';
    if (!step && !ASSIGNMENT.test(this.at(operator))) {
      this.reads.add(name);
      return { text: `read_${name}(${index})${this.space(close)}`, next: close + 1 };
    }
    const end = step ? operator + 1 : this.endOfStatement(operator + 1);
    const given = step ? '1' : this.between(operator + 1, end).trim();
    const sign = this.at(operator).slice(0, step ? 1 : -1);
    if (sign) this.reads.add(name);
    const value = sign ? `read_${name}(${index})${lane ? `[${lane.index}]` : ''} ${sign} (${given})` : given;
    (lane ? this.laneWrites : this.writes).add(name);
    return {
      text: lane ? `write_lane_${name}(${index}, ${lane.index}, ${value})` : `write_${name}(${index}, ${value})`,
      next: end,
    };
  }

  /** The lane that the tokens from `i` on select, if any. */
  private lane(i: number): { index: string; next: number } | undefined {
    const close = this.brackets.get(i);
    if (this.at(i) === '[' && close !== undefined)
      return { index: `u32(${this.between(i + 1, close)})`, next: close + 1 };
    const component =
      this.at(i) === '.' ? Math.max('xyzw'.indexOf(this.at(i + 1)), 'rgba'.indexOf(this.at(i + 1))) : -1;
    return component < 0 || this.at(i + 1).length > 1 ? undefined : { index: `${component}u`, next: i + 2 };
  }

  /**
   * The end of the statement whose right side begins at `begin`: before its semicolon, or the bracket around a for's
   * header.
   */
  private endOfStatement(begin: number): number {
    let i = begin;
    while (i < this.tokens.length && ![';', ')', '}'].includes(this.at(i))) i = (this.brackets.get(i) ?? i) + 1;
    return i;
  }

  private at(i: number): string {
    return this.tokens[i]?.text ?? '';
  }

  /** The text between a token and the next. */
  private space(i: number): string {
    return this.text.slice(this.tokens[i].start + this.tokens[i].text.length, this.tokens[i + 1]?.start);
  }
}
