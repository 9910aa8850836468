// From the tree of a WGSL module to GLSL ES 3.00. WGSL infers the types of its variables, so the writer does, too.
// Names get a prefix: GLSL has reserved others than WGSL.
import { BUILTINS } from './builtins';
import type { Declaration, Expression, FunctionText, Module, Parameter, Statement, TypeName } from './syntax';
import {
  concreteType,
  elementOf,
  isAbstract,
  namedType,
  type Scalar,
  scalarType,
  type Type,
  typeOf,
  typeText,
} from './types';
import {
  type Value,
  ARITHMETIC,
  literal,
  numbers,
  folded,
  constant,
  zeros,
  converted,
  widened,
  truths,
  unwritable,
} from './values';

/** An array that the text reads or writes through functions: read_NAME(uint), write_NAME(uint, value). */
export interface Accessed {
  readonly name: string;
  readonly type: Type;
}

interface Surroundings {
  readonly arrays: readonly Accessed[];
  /** Of the fields of `u`. */
  readonly uniforms: ReadonlyMap<string, Scalar>;
}

const COMPARISONS: { readonly [sign: string]: string } = {
  '<': 'lessThan',
  '>': 'greaterThan',
  '<=': 'lessThanEqual',
  '>=': 'greaterThanEqual',
  '==': 'equal',
  '!=': 'notEqual',
};
const BITCASTS: { readonly [way: string]: string } = {
  'f32 u32': 'floatBitsToUint',
  'f32 i32': 'floatBitsToInt',
  'u32 f32': 'uintBitsToFloat',
  'i32 f32': 'intBitsToFloat',
};

/** GLSL of the functions of a module; `main` is thread(uint), of whose built-in values all are 0 but the index. */
export function writeModule(module: Module, surroundings: Surroundings): string {
  return new Writer(module, surroundings).text();
}

class Writer {
  private readonly scopes: Map<string, Type>[] = [new Map()];
  private result: Type | undefined;
  private readonly names: ReadonlyMap<string, TypeName>;

  constructor(
    private readonly module: Module,
    private readonly around: Surroundings,
  ) {
    const structs = [...module.structs.keys()].map((name) => [name, { name, of: [] }] as const);
    this.names = new Map([...structs, ...module.aliases]);
  }

  text(): string {
    const { structs, variables, functions } = this.module;
    const types = [...structs].map(
      ([name, fields]) => `struct m_${name} { ${fields.map((field) => `${this.parameter(field)};`).join(' ')} };`,
    );
    const globals = variables.map((each) => {
      if (each.space === 'workgroup') throw unwritable(`memory that threads share (${each.name})`);
      return this.declaration(each);
    });
    const heads = functions.filter(({ name }) => name !== 'main').map((each) => `${this.head(each)};`);
    return [...types, ...globals, ...heads, ...functions.map((each) => this.function(each))].join('\n');
  }

  private head({ name, parameters, result }: FunctionText): string {
    const given = parameters.map((each) => this.parameter(each));
    return `${result ? typeText(this.type(result)) : 'void'} m_${name}(${given.join(', ')})`;
  }

  private parameter({ name, type }: Parameter): string {
    return `${typeText(this.type(type))} m_${name}`;
  }

  private function(made: FunctionText): string {
    const { name, parameters, result, body } = made;
    this.result = result && this.type(result);
    this.scopes.push(new Map(parameters.map((each) => [each.name, this.type(each.type)])));
    const lines = body.map((each) => this.statement(each));
    this.scopes.pop();
    if (name !== 'main') return `${this.head(made)} {\n${lines.join('\n')}\n}`;
    const values = parameters.map((each) => {
      const { lanes } = this.type(each.type);
      const value = each.name.includes('groups') ? '1u' : each.name === 'lane' || each.name === 'id' ? 'own' : '0u';
      return `${typeText(this.type(each.type))} m_${each.name} = ${lanes === 1 ? value : `uvec3(${value}, 0u, 0u)`};`;
    });
    return `void thread(uint own) {\n${[...values, ...lines].join('\n')}\n}`;
  }

  private type(name: TypeName): Type {
    return typeOf(name, this.names);
  }

  private statement(made: Statement): string {
    switch (made.kind) {
      case 'declare':
        return this.declaration(made);
      case 'assign':
        return this.assignment(made);
      case 'call':
        return `${this.value(made.call).text};`;
      case 'block':
        return this.scoped(() => `{\n${made.body.map((each) => this.statement(each)).join('\n')}\n}`);
      case 'if': {
        const otherwise = made.otherwise ? ` else ${this.statement(made.otherwise)}` : '';
        return `if (${this.value(made.test).text}) ${this.statement(made.then)}${otherwise}`;
      }
      case 'for':
        return this.scoped(() => {
          const first = made.first ? this.statement(made.first) : ';';
          const test = made.test ? this.value(made.test).text : '';
          const next = made.next ? this.statement(made.next).slice(0, -1) : '';
          return `for (${first} ${test}; ${next}) ${this.statement(made.body)}`;
        });
      case 'return':
        return made.value ? `return ${this.as(this.value(made.value), this.result!)};` : 'return;';
      default:
        return `${made.kind};`;
    }
  }

  private scoped(work: () => string): string {
    this.scopes.push(new Map());
    const text = work();
    this.scopes.pop();
    return text;
  }

  private declaration({ how, name, type: given, value }: Declaration): string {
    const known = given && this.type(given);
    const made = value && this.value(value);
    const type = known ?? concreteType(made!.type);
    this.scopes.at(-1)!.set(name, type);
    const start = made ? this.as(made, type) : zeros(type);
    return `${how === 'const' && made?.numbers ? 'const ' : ''}${typeText(type)} m_${name} = ${start};`;
  }

  private assignment({ target, sign, value }: Statement & { readonly kind: 'assign' }): string {
    const written = target.kind === 'index' && this.array(target.of);
    const old = written ? undefined : this.value(target);
    if (written) {
      if (sign !== '=') throw unwritable(`${sign} of elements of ${written.name}`);
      const at = this.as(this.value((target as { at: Expression }).at), scalarType('u32'), true);
      return `write_${written.name}(${at}, ${this.as(this.value(value), written.type)});`;
    }
    if (target.kind === 'name' && target.name === '_') return `${this.value(value).text};`;
    const bare = sign.slice(0, -1);
    if (bare === '') return `${old!.text} = ${this.as(this.value(value), old!.type)};`;
    const made = this.binary(bare, old!, this.value(value));
    return `${old!.text} = ${this.as(made, old!.type)};`;
  }

  /** The array that a name means. */
  private array(of: Expression): Accessed | undefined {
    if (of.kind !== 'name' || this.local(of.name)) return undefined;
    return this.around.arrays.find(({ name }) => name === of.name);
  }

  private local(name: string): Type | undefined {
    for (let i = this.scopes.length - 1; i >= 0; i--) {
      const found = this.scopes[i].get(name);
      if (found) return found;
    }
    return undefined;
  }

  private value(made: Expression): Value {
    switch (made.kind) {
      case 'number':
        return literal(made.text);
      case 'name':
        return this.named(made.name);
      case 'member':
        return this.member(made.of, made.name);
      case 'index': {
        const at = this.value(made.at);
        const array = this.array(made.of);
        if (array) return { type: array.type, text: `read_${array.name}(${this.as(at, scalarType('u32'), true)})` };
        const of = this.value(made.of);
        const type = of.type.count === undefined ? scalarType(of.type.scalar) : elementOf(of.type);
        return { type, text: `${of.text}[${this.as(at, concreteType(at.type))}]` };
      }
      case 'unary':
        return this.unary(made.sign, this.value(made.of));
      case 'binary':
        return this.binary(made.sign, this.value(made.left), this.value(made.right));
      case 'call':
        return this.call(made.type, made.args);
    }
  }

  private named(name: string): Value {
    if (name === 'true' || name === 'false') return { type: scalarType('bool'), text: name };
    const type = this.local(name);
    if (!type) throw unwritable(`the name ${name}`);
    return { type, text: `m_${name}` };
  }

  private member(of: Expression, name: string): Value {
    if (of.kind === 'name' && of.name === 'u' && !this.local('u')) {
      const scalar = this.around.uniforms.get(name);
      if (!scalar) throw unwritable(`the uniform ${name}`);
      return { type: scalarType(scalar), text: `u.m_${name}` };
    }
    const value = this.concrete(this.value(of));
    const field = this.module.structs.get(value.type.struct ?? '')?.find((each) => each.name === name);
    if (field) return { type: this.type(field.type), text: `${value.text}.m_${name}` };
    return { type: { scalar: value.type.scalar, lanes: name.length }, text: `${value.text}.${name}` };
  }

  private unary(sign: string, of: Value): Value {
    if (of.numbers && sign === '-')
      return numbers(
        of.type,
        of.numbers.map((number) => -number),
      );
    const { type, text } = this.concrete(of);
    if (sign === '!' && type.lanes > 1) return { type, text: `not(${text})` };
    return { type, text: `${sign}(${text})` };
  }

  private binary(sign: string, left: Value, right: Value): Value {
    const apply = ARITHMETIC[sign];
    if (left.numbers && right.numbers && apply) return folded(left, right, sign, apply);
    const shift = sign === '<<' || sign === '>>';
    const [a, b] = shift ? [this.concrete(left), this.shiftBy(right)] : this.alike([left, right]);
    const lanes = Math.max(a.type.lanes, b.type.lanes);
    const type: Type = { scalar: a.type.scalar, lanes };
    if (Object.hasOwn(COMPARISONS, sign)) {
      const truth: Type = { scalar: 'bool', lanes };
      if (lanes === 1) return { type: truth, text: `(${a.text} ${sign} ${b.text})` };
      return { type: truth, text: `${COMPARISONS[sign]}(${widened(a, lanes)}, ${widened(b, lanes)})` };
    }
    if (type.scalar === 'bool') return { type, text: truths(sign, a.text, b.text, lanes) };
    if (sign === '%' && type.scalar !== 'u32')
      return { type, text: `modulo(${widened(a, lanes)}, ${widened(b, lanes)})` };
    return { type, text: `(${a.text} ${sign} ${b.text})` };
  }

  private shiftBy(right: Value): Value {
    return right.numbers ? { ...right, text: this.as(right, { ...right.type, scalar: 'u32' }) } : right;
  }

  private call({ name, of }: TypeName, args: readonly Expression[]): Value {
    const values = args.map((each) => this.value(each));
    if (name === 'bitcast') return this.bitcast(this.type(of[0] as TypeName), this.concrete(values[0]));
    const type = namedType({ name, of }, this.names);
    if (type) return this.construct(type, values, of.length > 0 || !/^vec[234]$/.test(name));
    const own = this.module.functions.find((each) => each.name === name);
    if (own) {
      const given = own.parameters.map((each, i) => this.as(values[i], this.type(each.type)));
      return { type: own.result ? this.type(own.result) : scalarType('bool'), text: `m_${name}(${given.join(', ')})` };
    }
    if (!Object.hasOwn(BUILTINS, name)) throw unwritable(`the function ${name}`);
    const builtin = BUILTINS[name];
    if (name === 'select') return this.select(values);
    const given = this.alike(values);
    const lanes = Math.max(...given.map((each) => each.type.lanes));
    const argument: Type = { scalar: given[0].type.scalar, lanes };
    if (lanes === 1 && (name === 'any' || name === 'all')) return given[0];
    const called = builtin.name ?? name;
    return {
      type: builtin.result?.(argument) ?? argument,
      text: `${called}(${given.map(({ text }) => text).join(', ')})`,
    };
  }

  private select([no, yes, test]: readonly Value[]): Value {
    const [a, b] = this.alike([no, yes]);
    const name = test.type.lanes > 1 ? 'chosen_each' : 'chosen';
    return { type: a.type, text: `${name}(${a.text}, ${b.text}, ${test.text})` };
  }

  private bitcast(to: Type, value: Value): Value {
    const { scalar, lanes } = value.type;
    const type: Type = { scalar: to.scalar, lanes };
    if (scalar === to.scalar) return { type, text: value.text };
    return { type, text: `${BITCASTS[`${scalar} ${to.scalar}`] ?? typeText(type)}(${value.text})` };
  }

  /** `typed`: whether the type of its lanes is given. */
  private construct(given: Type, values: readonly Value[], typed: boolean): Value {
    const fields = this.module.structs.get(given.struct ?? '');
    if (fields) {
      const parts = fields.map((field, i) => this.as(values[i], this.type(field.type)));
      return { type: given, text: `${typeText(given)}(${parts.join(', ')})` };
    }
    if (values.length === 0) return { type: given, text: zeros(given) };
    if (given.count !== undefined)
      return {
        type: given,
        text: `${typeText(given)}(${values.map((each) => this.as(each, elementOf(given))).join(', ')})`,
      };
    const scalar = typed ? given.scalar : (values.find((each) => !isAbstract(each.type)) ?? values[0]).type.scalar;
    const type: Type = { scalar, lanes: given.lanes };
    if (values.every((each) => each.numbers)) {
      const all = values.flatMap((each) => each.numbers!);
      const lanes = all.length === 1 ? new Array<number>(given.lanes).fill(all[0]) : all;
      if (isAbstract(type)) {
        const kind = values.some((each) => each.type.scalar === 'float') ? 'float' : 'int';
        return numbers({ scalar: kind, lanes: given.lanes }, lanes);
      }
      return { type, text: constant(type, lanes) };
    }
    const parts = values.map((each) => converted(this.concrete(each, scalar), scalar));
    if (values.length === 1 && values[0].type.lanes === type.lanes) return { type, text: parts[0] };
    return { type, text: `${typeText(type)}(${parts.join(', ')})` };
  }

  /** Values of one scalar type: literals become what the others are. */
  private alike(values: readonly Value[]): Value[] {
    const scalar =
      values.find((each) => !isAbstract(each.type))?.type.scalar ??
      (values.some((each) => each.type.scalar === 'float') ? 'f32' : 'i32');
    return values.map((each) => this.concrete(each, scalar));
  }

  private concrete(value: Value, scalar = concreteType(value.type).scalar): Value {
    if (!value.numbers || !isAbstract(value.type)) return value;
    const type = concreteType({ ...value.type, scalar });
    return { type, text: constant(type, value.numbers) };
  }

  /** The text of a value as a type; `any`: of any integer type. */
  private as(value: Value, type: Type, any = false): string {
    if (value.numbers && isAbstract(value.type)) return constant({ ...type, lanes: value.type.lanes }, value.numbers);
    if (any && value.type.scalar !== type.scalar) return converted(value, type.scalar);
    return value.text;
  }
}
