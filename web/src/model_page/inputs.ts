// The page's fields for each input: sizes that the model leaves open, and contents.
import { RuntimeError, ErrorCode, Tensor, type ValueMetadata } from '../index';
import { element } from './elements';

export interface InputForm {
  readonly name: string;
  readonly shown: HTMLElement;
  tensor(): Promise<Tensor>;
}

type Shapes = { readonly [input: string]: readonly number[] };
type TensorMetadata = ValueMetadata & { readonly isTensor: true };

/** How the colors of an image, 0 to 255, become elements: (color + bias) / mean. */
const NORMS = {
  'image, 0 to 1': { bias: 0, mean: 255 },
  'image, -1 to 1': { bias: -127.5, mean: 127.5 },
  'image, as trained on ImageNet': {
    bias: [-123.675, -116.28, -103.53] as [number, number, number],
    mean: [58.395, 57.12, 57.375] as [number, number, number],
  },
  'image, 0 to 255': { bias: 0, mean: 1 },
};

export function inputForms(inputs: readonly ValueMetadata[], shapes: Shapes): InputForm[] {
  const named = new Map<string, HTMLInputElement[]>();
  return inputs.map((input) => {
    if (input.isTensor) return tensorForm(input, shapes[input.name], named);
    const shown = element('fieldset');
    shown.append(element('legend', input.name), element('p', 'is no tensor: this page cannot make one', 'bad'));
    const tensor = () => Promise.reject(wrong(`${input.name} is no tensor: feed it from a page of your own`));
    return { name: input.name, shown, tensor };
  });
}

/** @param named the fields of each dimension's name, which hold the same number. */
function tensorForm(
  input: TensorMetadata,
  begin: readonly number[] | undefined,
  named: Map<string, HTMLInputElement[]>,
) {
  const { name, type } = input;
  // Exporters write "?" for sizes unknown to them.
  const shape = input.shape.map((size) => (size === '?' ? '' : size));
  const shown = element('fieldset');
  const words = shape.map((size) => size || '?').join(' × ') || 'any shape, or a single number';
  shown.append(element('legend', name), element('span', `${type}  ${words} `, 'help'));
  const anyRank = shape.length === 0 && begin !== undefined && begin.length > 0;
  const sizes = (anyRank ? begin : shape).map((size, axis) => {
    const open = anyRank || typeof size === 'string';
    const number = element('input');
    number.type = 'number';
    number.min = '0';
    number.value = String(open ? (begin?.[axis] ?? 1) : size);
    if (!open) return number;
    const label = element('label', `${typeof size === 'string' && size ? size : `axis ${axis}`} `);
    label.append(number);
    shown.append(label);
    if (typeof size === 'string' && size) share(number, size, named);
    return number;
  });
  const norms = isImage(
    type,
    sizes.map(({ value }) => Number(value)),
  )
    ? Object.keys(NORMS)
    : [];
  const fill = element('select');
  fill.append(...['random', 'zeros', 'ones', ...norms].map((text) => new Option(text)));
  const file = element('input');
  file.type = 'file';
  file.accept = 'image/*';
  file.hidden = true;
  fill.onchange = () => {
    file.hidden = !(fill.value in NORMS);
  };
  shown.append(fill, file);
  const dims = () => sizes.map(({ value }) => Number(value));
  const tensor = async () =>
    fill.value in NORMS
      ? image(name, file.files?.[0], dims(), NORMS[fill.value as keyof typeof NORMS])
      : new Tensor(type, filled(type, dims(), fill.value) as never, dims());
  return { name, shown, tensor };
}

function share(number: HTMLInputElement, size: string, named: Map<string, HTMLInputElement[]>): void {
  const others = named.get(size) ?? [];
  named.set(size, others);
  others.push(number);
  number.oninput = () => {
    for (const other of others) other.value = number.value;
  };
}

function isImage(type: string, dims: readonly number[]): boolean {
  return type === 'float32' && dims.length === 4 && dims[1] === 3;
}

/** An image, scaled to the sizes of an input [1, 3, height, width]. */
async function image(
  name: string,
  file: File | undefined,
  [batch, , height, width]: readonly number[],
  norm: (typeof NORMS)[keyof typeof NORMS],
): Promise<Tensor> {
  if (!file) throw wrong(`choose an image file for ${name}`);
  if (batch !== 1) throw wrong(`an image is one of its kind: the first size of ${name} has to be 1`);
  const options = { resizedHeight: height, resizedWidth: width, tensorFormat: 'RGB', norm } as const;
  return Tensor.fromImage(await createImageBitmap(file), options);
}

/** Random: floats from -1 to 1, integers and booleans 0 or 1. The same numbers each time. */
function filled(type: string, dims: readonly number[], how: string): unknown {
  const count = dims.reduce((product, size) => product * size, 1);
  if (!Number.isSafeInteger(count)) throw wrong(`no tensor has the sizes ${dims.join(' × ')}`);
  const next = generator();
  const number = () => (how === 'zeros' ? 0 : how === 'ones' ? 1 : next());
  const integer = () => (how === 'random' ? Number(next() > 0) : number());
  const numbers = (make: () => number) => Array.from({ length: count }, make);
  if (type === 'string') return numbers(integer).map(String);
  if (type === 'bool') return Uint8Array.from({ length: count }, integer);
  if (type === 'float32') return Float32Array.from({ length: count }, number);
  if (type === 'float64') return Float64Array.from({ length: count }, number);
  if (type === 'float16') return Uint16Array.from({ length: count }, () => toHalf(number()));
  if (type === 'int64') return BigInt64Array.from(numbers(integer), BigInt);
  if (type === 'uint64') return BigUint64Array.from(numbers(integer), BigInt);
  return numbers(integer);
}

/** The nearest float16 of a number between -1 and 1. */
function toHalf(value: number): number {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  const exponent = ((bits >> 23) & 255) - 112;
  return exponent <= 0 ? 0 : ((bits >> 16) & 0x8000) | (exponent << 10) | ((bits >> 13) & 1023);
}

/** Numbers from -1 to 1 that look random (mulberry32). */
function generator(): () => number {
  let state = 7;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2147483648 - 1;
  };
}

const wrong = (text: string) => new RuntimeError(ErrorCode.invalid_argument, text);
