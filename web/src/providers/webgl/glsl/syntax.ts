// WGSL as a tree: the part of the language that kernels are written in, without attributes.
import { KernelError } from '../../../contract/kernel';
import { ASSIGNMENT, tokensOf, WORD } from '../../webgpu/wgsl/tokens';

export type Expression =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'call'; readonly type: TypeName; readonly args: readonly Expression[] }
  | { readonly kind: 'index'; readonly of: Expression; readonly at: Expression }
  | { readonly kind: 'member'; readonly of: Expression; readonly name: string }
  | { readonly kind: 'unary'; readonly sign: string; readonly of: Expression }
  | { readonly kind: 'binary'; readonly sign: string; readonly left: Expression; readonly right: Expression };

/** The name of a type or of a function, with what is between its angle brackets. */
export interface TypeName {
  readonly name: string;
  readonly of: readonly (TypeName | number)[];
}

export interface Declaration {
  readonly kind: 'declare';
  readonly how: 'let' | 'var' | 'const';
  readonly name: string;
  readonly type?: TypeName;
  readonly value?: Expression;
  /** Of var: private, workgroup. */
  readonly space?: string;
}

export type Statement =
  | Declaration
  | { readonly kind: 'assign'; readonly target: Expression; readonly sign: string; readonly value: Expression }
  | { readonly kind: 'call'; readonly call: Expression }
  | { readonly kind: 'block'; readonly body: readonly Statement[] }
  | { readonly kind: 'if'; readonly test: Expression; readonly then: Statement; readonly otherwise?: Statement }
  | {
      readonly kind: 'for';
      readonly first?: Statement;
      readonly test?: Expression;
      readonly next?: Statement;
      readonly body: Statement;
    }
  | { readonly kind: 'return'; readonly value?: Expression }
  | { readonly kind: 'break' | 'continue' };

export interface Parameter {
  readonly name: string;
  readonly type: TypeName;
}

export interface FunctionText {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly result?: TypeName;
  readonly body: readonly Statement[];
}

export interface Module {
  readonly aliases: ReadonlyMap<string, TypeName>;
  /** The fields of each. */
  readonly structs: ReadonlyMap<string, readonly Parameter[]>;
  readonly variables: readonly Declaration[];
  readonly functions: readonly FunctionText[];
}

/** By how strongly they bind; those of one line from the left. */
const PRECEDENCE = [
  ['||'],
  ['&&'],
  ['|'],
  ['^'],
  ['&'],
  ['==', '!='],
  ['<', '>', '<=', '>='],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '%'],
];
const TEMPLATED = new Set(['vec2', 'vec3', 'vec4', 'array', 'bitcast']);

export const parseModule = (text: string): Module => parserOf(text).module();
export const parseType = (text: string): TypeName => parserOf(text).type();

const parserOf = (text: string) => new Parser(tokensOf(text).map((token) => token.text));

class Parser {
  private at = 0;

  constructor(private readonly tokens: string[]) {}

  module(): Module {
    const aliases = new Map<string, TypeName>();
    const structs = new Map<string, readonly Parameter[]>();
    const variables: Declaration[] = [];
    const functions: FunctionText[] = [];
    while (this.at < this.tokens.length) {
      this.attributes();
      if (this.skip('alias')) {
        const name = this.next();
        this.expect('=');
        aliases.set(name, this.type());
        this.expect(';');
      } else if (this.skip('struct')) {
        const name = this.next();
        this.expect('{');
        structs.set(name, this.parameters('}'));
      } else if (this.skip('fn')) functions.push(this.function());
      else if (this.skip(';')) continue;
      else variables.push(this.declaration());
    }
    return { aliases, structs, variables, functions };
  }

  private function(): FunctionText {
    const name = this.next();
    this.expect('(');
    const parameters = this.parameters(')');
    const result = this.skip('->') ? this.type() : undefined;
    return { name, parameters, result, body: this.block() };
  }

  private parameters(end: string): Parameter[] {
    return this.list(end, () => {
      this.attributes();
      const name = this.next();
      this.expect(':');
      return { name, type: this.type() };
    });
  }

  private attributes(): void {
    while (this.skip('@')) {
      this.next();
      if (this.skip('(')) this.list(')', () => this.expression());
    }
  }

  private block(): Statement[] {
    this.expect('{');
    const body: Statement[] = [];
    while (!this.skip('}')) if (!this.skip(';')) body.push(this.statement());
    return body;
  }

  private statement(): Statement {
    if (this.peek() === '{') return { kind: 'block', body: this.block() };
    if (this.skip('if')) return this.condition();
    if (this.skip('for')) return this.loop();
    if (this.skip('while'))
      return { kind: 'for', test: this.expression(), body: { kind: 'block', body: this.block() } };
    if (this.skip('loop')) return { kind: 'for', body: { kind: 'block', body: this.block() } };
    if (this.skip('return')) {
      const value = this.peek() === ';' ? undefined : this.expression();
      this.expect(';');
      return { kind: 'return', value };
    }
    for (const kind of ['break', 'continue'] as const)
      if (this.skip(kind)) {
        this.expect(';');
        return { kind };
      }
    if (['let', 'var', 'const'].includes(this.peek())) return this.declaration();
    const simple = this.simple();
    this.expect(';');
    return simple;
  }

  private condition(): Statement {
    const test = this.expression();
    const then: Statement = { kind: 'block', body: this.block() };
    if (!this.skip('else')) return { kind: 'if', test, then };
    const otherwise: Statement = this.skip('if') ? this.condition() : { kind: 'block', body: this.block() };
    return { kind: 'if', test, then, otherwise };
  }

  private loop(): Statement {
    this.expect('(');
    const first = this.peek() === ';' ? undefined : this.peek() === 'var' ? this.bare() : this.simple();
    this.expect(';');
    const test = this.peek() === ';' ? undefined : this.expression();
    this.expect(';');
    const next = this.peek() === ')' ? undefined : this.simple();
    this.expect(')');
    return { kind: 'for', first, test, next, body: { kind: 'block', body: this.block() } };
  }

  private declaration(): Declaration {
    const made = this.bare();
    this.expect(';');
    return made;
  }

  private bare(): Declaration {
    const how = this.next() as Declaration['how'];
    if (!['let', 'var', 'const'].includes(how)) throw this.unexpected(how);
    let space: string | undefined;
    if (this.skip('<')) {
      space = this.next();
      this.expect('>');
    }
    const name = this.next();
    const type = this.skip(':') ? this.type() : undefined;
    const value = this.skip('=') ? this.expression() : undefined;
    return { kind: 'declare', how, name, type, value, space };
  }

  private simple(): Statement {
    const target = this.unary();
    const sign = this.peek();
    if (sign === '++' || sign === '--') {
      this.at++;
      return { kind: 'assign', target, sign: `${sign[0]}=`, value: { kind: 'number', text: '1' } };
    }
    if (ASSIGNMENT.test(sign)) {
      this.at++;
      return { kind: 'assign', target, sign, value: this.expression() };
    }
    return { kind: 'call', call: target };
  }

  private expression(level = 0): Expression {
    if (level === PRECEDENCE.length) return this.unary();
    let left = this.expression(level + 1);
    while (PRECEDENCE[level].includes(this.peek())) {
      const sign = this.next();
      left = { kind: 'binary', sign, left, right: this.expression(level + 1) };
    }
    return left;
  }

  private unary(): Expression {
    const sign = this.peek();
    if (sign === '--') {
      this.at++;
      return { kind: 'unary', sign: '-', of: { kind: 'unary', sign: '-', of: this.unary() } };
    }
    if (!['-', '!', '~'].includes(sign)) return this.postfix();
    this.at++;
    return { kind: 'unary', sign, of: this.unary() };
  }

  private postfix(): Expression {
    let of = this.primary();
    for (;;) {
      if (this.skip('[')) {
        const at = this.expression();
        this.expect(']');
        of = { kind: 'index', of, at };
      } else if (this.skip('.')) of = { kind: 'member', of, name: this.next() };
      else return of;
    }
  }

  private primary(): Expression {
    if (this.skip('(')) {
      const inner = this.expression();
      this.expect(')');
      return inner;
    }
    const token = this.next();
    if (/^[\d.]/.test(token)) return { kind: 'number', text: token };
    if (!WORD.test(token)) throw this.unexpected(token);
    const of = TEMPLATED.has(token) && this.peek() === '<' ? this.template() : [];
    if (!this.skip('(')) return { kind: 'name', name: token };
    return { kind: 'call', type: { name: token, of }, args: this.list(')', () => this.expression()) };
  }

  type(): TypeName {
    const name = this.next();
    return { name, of: this.peek() === '<' ? this.template() : [] };
  }

  private template(): (TypeName | number)[] {
    this.expect('<');
    // Types of types end with one token.
    const closing = () => {
      if (this.peek().startsWith('>') && this.peek().length > 1)
        this.tokens.splice(this.at, 1, '>', this.peek().slice(1));
      return this.skip('>');
    };
    const of: (TypeName | number)[] = [];
    while (!closing()) {
      of.push(/^\d/.test(this.peek()) ? Number.parseInt(this.next(), 10) : this.type());
      this.skip(',');
    }
    return of;
  }

  private list<T>(end: string, item: () => T): T[] {
    const items: T[] = [];
    while (!this.skip(end)) {
      items.push(item());
      if (this.peek() !== end) this.expect(',');
    }
    return items;
  }

  private peek(): string {
    return this.tokens[this.at] ?? '';
  }

  private next(): string {
    return this.tokens[this.at++] ?? '';
  }

  private skip(token: string): boolean {
    if (this.tokens[this.at] !== token) return false;
    this.at++;
    return true;
  }

  private expect(token: string): void {
    const found = this.next();
    if (found !== token) throw this.unexpected(found, token);
  }

  private unexpected(found: string, wanted = 'something else'): KernelError {
    const before = this.tokens.slice(Math.max(0, this.at - 12), this.at - 1).join(' ');
    return new KernelError(`the shader has "${found}" in place of ${wanted}, behind "${before}"`, true);
  }
}
