// com.microsoft's MultiHeadAttention and Attention: masks are of keys, by their number or by an added fill, and of
// scores.
import { MICROSOFT_DOMAIN } from '../../../contract/kernel';
import { RuntimeError } from '../../../errors';
import { ErrorCode } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { attend, inHeads, inRows, number } from './shared/attend';
import { range } from './shared/calls';

const [QUERY, KEY, VALUE, BIAS, MASK, SCORES, PAST_KEY] = [0, 1, 2, 3, 4, 5, 6];

/** Queries, keys and values as heads; packed ones are [batch, positions, heads, parts, size]. */
function projected(f: Formula, x: readonly MlOperand[], heads: number): readonly MlOperand[] {
  const [query, key, value] = [x[QUERY], x[KEY], x[VALUE]];
  const packed = (from: MlOperand, count: number) =>
    f.several('split', f.plain('transpose', from, { permutation: [0, 2, 1, 3, 4] }), count, { axis: 3 }).map((part) => {
      const [batch, each, positions, , size] = part.shape;
      return f.reshape(part, [batch, each, positions, size]);
    });
  if (query.shape.length === 5) return packed(query, 3);
  const q = inHeads(f, query, heads);
  if (key.shape.length === 5) return [q, ...packed(key, 2)];
  return [q, inHeads(f, key, heads), inHeads(f, value, heads)];
}

/** With their parts of the bias; keys that arrive as heads include theirs already. */
function biased(
  f: Formula,
  parts: readonly MlOperand[],
  bias: MlOperand | undefined,
  ready: boolean,
): readonly MlOperand[] {
  if (!bias) return parts;
  let start = 0;
  return parts.map((part, i) => {
    const [, heads, , size] = part.shape;
    const own = f.reshape(f.part(bias, 0, start, heads * size), [1, heads, 1, size]);
    start += heads * size;
    return i > 0 && ready ? part : f.plain('add', part, own);
  });
}

/** A number for each key that is masked out, [batch, 1, queries or 1, keys]. */
function fillOf(
  f: Formula,
  mask: MlOperand,
  [batch, rows, keys]: readonly number[],
  fill: number,
): MlOperand | undefined {
  const { shape } = mask;
  if (shape.length === 2 && shape[1] === 1 && keys !== 1) return undefined;
  const seen = () => {
    if (shape.length === 2) return f.cast(f.reshape(mask, [batch, 1, 1, keys]), 'uint8');
    if (shape.length === 3) return f.cast(f.reshape(mask, [batch, 1, rows, keys]), 'uint8');
    const ends = f.part(mask, 0, 0, batch);
    const key = f.constant(range(keys), [1, 1, 1, keys]);
    const before = f.plain('lesser', key, f.reshape(ends, [batch, 1, 1, 1]));
    if (shape[0] !== 2 * batch) return before;
    const begins = f.reshape(f.part(mask, 0, batch, batch), [batch, 1, 1, 1]);
    return f.plain('logicalAnd', before, f.plain('greaterOrEqual', key, begins));
  };
  return f.plain('where', seen(), number(f, 0), number(f, fill));
}

function refused({ inputs }: Call, op: string, heads: number): RuntimeError {
  const shapes = inputs.slice(0, 2).map((input) => `[${input?.dims ?? []}]`);
  return new RuntimeError(ErrorCode.runtime_exception, `${op} of ${shapes.join(' and ')} in ${heads} heads`);
}

/** @param x queries, and all keys and values, as heads */
function masked(
  f: Formula,
  x: readonly MlOperand[],
  mask: MlOperand | undefined,
  scores: MlOperand | undefined,
  { attributes }: Call,
): MlOperand {
  const [batch, , rows, size] = x[0].shape;
  const keys = x[1].shape[2];
  const filled = mask && fillOf(f, mask, [batch, rows, keys], attributes.number('mask_filter_value', -10000));
  const given = scores && f.cast(scores, 'float32');
  const added = filled && given ? f.plain('add', filled, given) : (filled ?? given);
  // As natively, one query sees all keys, however many are new.
  const causal = attributes.integer('unidirectional', 0) !== 0 && rows > 1;
  const own = () => f.constant(range(rows, keys - rows), [1, 1, rows, 1]);
  const seen = causal ? f.plain('lesserOrEqual', f.constant(range(keys), [1, 1, 1, keys]), own()) : undefined;
  const scale = attributes.number('scale', 0) || 1 / Math.sqrt(size);
  const { y } = attend(f, x, { scale, softcap: 0, seen, added });
  return f.cast(inRows(f, y), x[0].dataType);
}

const multiHead = (call: Call): Emit => {
  const { attributes, inputs, wants } = call;
  const heads = attributes.integer('num_heads', 0);
  const [query, key] = [inputs[QUERY]!.dims, inputs[KEY]?.dims];
  const ready = key?.length === 4;
  if (heads <= 0 || !(query.length === 5 || (query[2] % heads === 0 && key)))
    throw refused(call, 'MultiHeadAttention', heads);
  return (f, x) => {
    const [q, ...now] = biased(f, projected(f, x, heads), x[BIAS], ready);
    const [k, v] = now.map((part, i) => {
      const before = x[PAST_KEY + i];
      return before ? f.plain('concat', [before, part], 2) : part;
    });
    const y = masked(f, [q, k, v], x[MASK], x[SCORES], call);
    return wants.slice(1).some(Boolean) ? [y, k, v] : y;
  };
};

/** Inputs: x, weights, bias, mask, past keys and values in one tensor, scores. */
const whole = (call: Call): Emit => {
  const { attributes, inputs, wants } = call;
  const heads = attributes.integer('num_heads', 0);
  const [rows, columns] = inputs[1]!.dims;
  const given = attributes.integers('qkv_hidden_sizes');
  const widths = given.length === 3 ? given : [columns / 3, columns / 3, columns / 3];
  const fits = widths.every((width) => Number.isInteger(width / heads)) && rows === inputs[0]!.dims[2];
  if (!fits || widths[0] !== widths[1]) throw refused(call, 'Attention', heads);
  return (f, [x, weights, bias, mask, past, scores]) => {
    const all = f.plain('matmul', x, f.reshape(weights, [1, rows, columns]));
    const sum = bias ? f.plain('add', all, bias) : all;
    const starts = [0, widths[0], widths[0] + widths[1]];
    const [q, ...now] = widths.map((width, i) => inHeads(f, sum, heads, starts[i], width / heads));
    const [k, v] = now.map((part, i) => {
      if (!past) return part;
      return f.plain('concat', [f.reshape(f.part(past, 0, i, 1), past.shape.slice(1)), part], 2);
    });
    const y = masked(f, [q, k, v], mask, scores, call);
    if (!wants[1]) return y;
    const present = f.plain(
      'concat',
      [k, v].map((one) => f.reshape(one, [1, ...one.shape])),
      0,
    );
    return [y, present];
  };
};

export default [
  {
    op: 'MultiHeadAttention',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS, FLOATS, FLOATS, FLOATS, ['int32'], FLOATS, FLOATS, FLOATS],
    requires: [
      { noOutput: 3, otherwise: 'scores as an output' },
      { noInput: 8, otherwise: 'caches that are longer than what is in them' },
      { noInput: 9, otherwise: 'beams' },
    ],
    emit: multiHead,
  },
  {
    op: 'Attention',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS, FLOATS, FLOATS, ['int32'], FLOATS, FLOATS],
    requires: [
      { attribute: 'do_rotary', values: [0], otherwise: 'rotation' },
      { attribute: 'past_present_share_buffer', values: [0], otherwise: 'a cache longer than its past' },
    ],
    emit: whole,
  },
] satisfies MlOperator[];
