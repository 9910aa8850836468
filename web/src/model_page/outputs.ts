// Outputs in words: type and shape, the smallest, mean and largest number, and the first ones.
import { type OnnxValue, Tensor } from '../index';
import { row } from './elements';

const FIRST = 8;

/** A row for a tensor, one for each tensor of a sequence. */
export function outputRows(name: string, value: OnnxValue): HTMLTableRowElement[] {
  if (value === null) return [row([name, 'nothing'])];
  if (!(value instanceof Tensor)) {
    const items = value as readonly OnnxValue[];
    const each = items.slice(0, FIRST).flatMap((item, i) => outputRows(`${name}[${i}]`, item));
    return [row([name, `sequence of ${items.length}`]), ...each];
  }
  const made = row([name, value.type, `[${value.dims.join(', ')}]`, ...numbers(value), first(value)]);
  made.lastElementChild!.className = 'text';
  return [made];
}

function first({ data, size }: Tensor): string {
  const values = Array.from(data as ArrayLike<unknown>).slice(0, FIRST);
  const texts = values.map((value) => (typeof value === 'number' ? short(value) : String(value)));
  return texts.join(', ') + (size > FIRST ? ', …' : '');
}

function numbers({ type, data }: Tensor): string[] {
  if (type === 'string' || /^u?int4$/.test(type)) return ['', '', ''];
  // The bits of halves are meaningless as numbers.
  if (/float16$/.test(type) && data instanceof Uint16Array) return ['', '', ''];
  let [least, most, sum] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  const values = data as ArrayLike<number | bigint>;
  for (let i = 0; i < values.length; i++) {
    const value = Number(values[i]);
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
  }
  return values.length === 0 ? ['', '', ''] : [short(least), short(sum / values.length), short(most)];
}

const short = (value: number) => String(Number(value.toPrecision(6)));
