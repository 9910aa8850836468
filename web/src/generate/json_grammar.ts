// The grammar of JSON (RFC 8259), character by character: the places in a text, and the tokens that may come there.

type At = 'value' | 'item' | 'key' | 'member' | 'colon' | 'behind' | 'string' | 'name' | 'literal' | NumberPart;
type NumberPart = 'minus' | 'zero' | 'digits' | 'point' | 'fraction' | 'e' | 'sign' | 'exponent';

/** A place in a JSON text. */
export interface Place {
  /** The brackets that are open. */
  readonly open: string;
  readonly at: At;
  /** The rest of a literal; of an escape the backslash or the missing digits; between values the blanks so far. */
  readonly rest: string;
}

export const BEGINNING: Place = { open: '', at: 'value', rest: '' };

/** So many blanks in succession: a model that likes them would write nothing else. */
const MOST_BLANKS = 32;

const DIGITS = '0123456789';
const to = (characters: string, part: NumberPart) => Object.fromEntries(Array.from(characters, (c) => [c, part]));
const FRACTION = { '.': 'point', ...to('eE', 'e') } as const;
const NUMBERS: { readonly [part in NumberPart]: { readonly [c: string]: NumberPart } } = {
  minus: { ...to(DIGITS, 'digits'), 0: 'zero' },
  zero: FRACTION,
  digits: { ...to(DIGITS, 'digits'), ...FRACTION },
  point: to(DIGITS, 'fraction'),
  fraction: { ...to(DIGITS, 'fraction'), ...to('eE', 'e') },
  e: { ...to(DIGITS, 'exponent'), ...to('+-', 'sign') },
  sign: to(DIGITS, 'exponent'),
  exponent: to(DIGITS, 'exponent'),
};
/** Parts in which a number may end. */
const ENDS: readonly At[] = ['zero', 'digits', 'fraction', 'exponent'];

const behind = (open: string): Place => ({ open, at: 'behind', rest: '' });

/** The place behind a character; undefined if the character cannot come there. */
export function next(place: Place, c: string): Place | undefined {
  const { open, at, rest } = place;
  if (at === 'string' || at === 'name') return inString(place, c);
  if (at === 'literal') {
    if (c !== rest[0]) return undefined;
    return rest.length > 1 ? { open, at, rest: rest.slice(1) } : behind(open);
  }
  if (at in NUMBERS) {
    const part = NUMBERS[at as NumberPart][c];
    if (part) return { open, at: part, rest: '' };
    return ENDS.includes(at) ? next(behind(open), c) : undefined;
  }
  if (' \n\r\t'.includes(c)) return rest.length < MOST_BLANKS ? { open, at, rest: `${rest} ` } : undefined;
  return between(place, c);
}

/** True if a text that ends here is a whole value. */
export function isWhole({ open, at }: Place): boolean {
  return open === '' && (at === 'behind' || ENDS.includes(at));
}

function inString(place: Place, c: string): Place | undefined {
  const { open, at, rest } = place;
  if (rest === '\\') {
    if (c === 'u') return { open, at, rest: '....' };
    return '"\\/bfnrt'.includes(c) ? { open, at, rest: '' } : undefined;
  }
  if (rest) return /[\da-f]/i.test(c) ? { open, at, rest: rest.slice(1) } : undefined;
  if (c === '\\') return { open, at, rest: '\\' };
  if (c === '"') return at === 'name' ? { open, at: 'colon', rest: '' } : behind(open);
  return c < ' ' ? undefined : place;
}

function between({ open, at }: Place, c: string): Place | undefined {
  const last = open[open.length - 1];
  switch (at) {
    case 'behind':
      if (c === ',' && last) return { open, at: last === '{' ? 'key' : 'value', rest: '' };
      return closed(open, c);
    case 'colon':
      return c === ':' ? { open, at: 'value', rest: '' } : undefined;
    case 'key':
    case 'member':
      if (c === '"') return { open, at: 'name', rest: '' };
      return at === 'member' ? closed(open, c) : undefined;
    default:
      return begun(open, c) ?? (at === 'item' ? closed(open, c) : undefined);
  }
}

function begun(open: string, c: string): Place | undefined {
  if (c === '{' || c === '[') return { open: open + c, at: c === '{' ? 'member' : 'item', rest: '' };
  if (c === '"') return { open, at: 'string', rest: '' };
  if (c === '-') return { open, at: 'minus', rest: '' };
  const literal = ['true', 'false', 'null'].find((word) => word[0] === c);
  if (literal) return { open, at: 'literal', rest: literal.slice(1) };
  const part = NUMBERS.minus[c];
  return part && { open, at: part, rest: '' };
}

function closed(open: string, c: string): Place | undefined {
  const fits = ['{}', '[]'].includes(open[open.length - 1] + c);
  return fits ? behind(open.slice(0, -1)) : undefined;
}

/** The place behind a text. */
export function behindText(place: Place | undefined, text: string): Place | undefined {
  let found = place;
  for (const c of text) {
    if (!found) return undefined;
    found = next(found, c);
  }
  return found;
}

/** So many masks are kept. */
const MOST_MASKS = 64;

/** Masks of the tokens with which a text is the beginning of a JSON value. */
export class JsonMasks {
  private readonly masks = new Map<string, Uint8Array>();

  /**
   * @param vocabulary the text of each token, by number; "" of tokens that are no text.
   * @param eos tokens that may come where the value is whole.
   */
  constructor(
    private readonly vocabulary: readonly string[],
    private readonly eos: readonly number[],
  ) {}

  /** @returns 1 for each token that may come behind these. */
  behind(tokens: readonly number[]): Uint8Array {
    const place = tokens.reduce<Place | undefined>(
      (found, token) => behindText(found, this.vocabulary[token] ?? ''),
      BEGINNING,
    );
    return place ? this.at(place) : new Uint8Array(this.vocabulary.length);
  }

  private at(place: Place): Uint8Array {
    const key = JSON.stringify(place);
    const known = this.masks.get(key);
    if (known) return known;
    const mask = Uint8Array.from(this.vocabulary, (text) => Number(text !== '' && !!behindText(place, text)));
    for (const token of this.eos) mask[token] = Number(isWhole(place));
    if (this.masks.size >= MOST_MASKS) this.masks.delete(this.masks.keys().next().value!);
    this.masks.set(key, mask);
    return mask;
  }
}
