// Users' options of providers, read by the table that py_ort/providers declares.
import { invalid } from '../errors';
import { LARGEST, PROVIDER_OPTIONS } from '../schema/provider_options';
import { named } from '../wire/values';

type Table = typeof PROVIDER_OPTIONS;
type Read<O> = O extends { kind: 'number' }
  ? number
  : O extends { kind: 'flag' }
    ? boolean
    : O extends { kind: 'choice'; values: readonly (infer V)[] }
      ? V
      : string;

interface Row {
  readonly kind: string;
  readonly values: readonly string[];
  readonly initial: string;
  readonly compiles: boolean;
}

/** A user's options, by onnxruntime's names: strings, or values that become the right string. */
export type GivenOptions = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** By provider. */
export type ProviderOptions = Readonly<Record<string, GivenOptions>>;

export type ProviderSettings<P extends keyof Table> = {
  readonly [K in keyof Table[P]['options']]: Read<Table[P]['options'][K]>;
};

interface Names {
  readonly prefix: string;
  readonly ignored: readonly string[];
}

const keyOf = ({ prefix }: Names, name: string) =>
  name.toLowerCase().startsWith(prefix) ? name.slice(prefix.length) : name;

/** The options of onnxruntime's provider among these that have no effect here. */
export function withoutEffect(provider: string, given: object): string[] {
  const names = named<Names>(PROVIDER_OPTIONS, provider);
  return names ? Object.keys(given).filter((name) => names.ignored.includes(keyOf(names, name))) : [];
}

/** Returns all options of a provider, defaults included; throws invalid_argument for an unknown key or value. */
export function providerSettings<P extends keyof Table>(provider: P, given: GivenOptions = {}): ProviderSettings<P> {
  const names: Names = PROVIDER_OPTIONS[provider];
  const rows = new Map<string, Row>(Object.entries(PROVIDER_OPTIONS[provider].options));
  const settings = new Map([...rows].map(([key, row]) => [key, read(row, row.initial)]));
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const key = keyOf(names, name);
    if (names.ignored.includes(key)) continue;
    const row = rows.get(key);
    if (!row) throw invalid(`the ${provider} provider has no option "${name}"; it has ${[...rows.keys()].join(', ')}`);
    const text = textOf(value);
    const wanted = mismatch(row, text);
    if (wanted) throw invalid(`option ${key} of the ${provider} provider is ${wanted}, not "${text}"`);
    settings.set(key, read(row, text));
  }
  return Object.fromEntries(settings) as ProviderSettings<P>;
}

/** The options that only the compiler reads, which is Python. */
export function forTheCompiler(given: ProviderOptions = {}): string[] {
  return Object.entries(PROVIDER_OPTIONS).flatMap(([provider, { options }]) => {
    const rows: readonly (readonly [string, Row])[] = Object.entries(options);
    return rows.filter(([key, { compiles }]) => compiles && key in (given[provider] ?? {})).map(([key]) => key);
  });
}

function mismatch({ kind, values }: Row, text: string): string | undefined {
  if (kind === 'number')
    return /^\d+$/.test(text) && Number(text) <= LARGEST ? undefined : `a whole number from 0 to ${LARGEST}`;
  return kind === 'text' || values.includes(text) ? undefined : `one of ${values.filter(Boolean).join(', ')}`;
}

function read({ kind }: Row, text: string): string | number | boolean {
  return kind === 'number' ? Number(text) : kind === 'flag' ? text === '1' : text;
}

function textOf(value: GivenOptions[string]): string {
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'object' ? value.join('\n') : String(value);
}
