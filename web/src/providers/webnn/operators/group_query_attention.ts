// com.microsoft's GroupQueryAttention: attention of decoders, with caches of keys and values, rotation included.
import { MICROSOFT_DOMAIN } from '../../../contract/kernel';
import { RuntimeError } from '../../../errors';
import { ErrorCode } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { attend, both, inHeads, inRows } from './shared/attend';
import { range } from './shared/calls';
import { angles, rotated } from './shared/rotation';

const [QUERY, KEY, PAST_KEY, LENGTHS, TOTAL, COSINE, POSITIONS, BIAS, SINK] = [0, 1, 3, 5, 6, 7, 9, 10, 11];

interface Sizes {
  readonly batch: number;
  readonly rows: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly size: number;
  /** The most valid keys, and the rows of the output caches. */
  readonly total: number;
  readonly capacity: number;
}

function sizesOf({ attributes, inputs, data }: Call): Sizes {
  const [heads, kvHeads] = ['num_heads', 'kv_num_heads'].map((name) => attributes.integer(name, 0));
  const [query, key, past] = [inputs[QUERY]!.dims, inputs[KEY], inputs[PAST_KEY]?.dims[2] ?? 0];
  const [batch, rows, width] = query;
  const size = width / (key ? heads : heads + 2 * kvHeads);
  const total = data(TOTAL)![0];
  const angles = inputs[COSINE]?.dims[0] ?? total;
  const fits = heads > 0 && kvHeads > 0 && heads % kvHeads === 0 && query.length === 3 && Number.isInteger(size);
  const turns = attributes.integer('do_rotary', 0) === 0 || (inputs[COSINE] && total <= angles);
  if (fits && turns && total >= rows)
    return { batch, rows, heads, kvHeads, size, total, capacity: Math.max(total, past) };
  throw new RuntimeError(
    ErrorCode.runtime_exception,
    `GroupQueryAttention of [${query}] in ${heads} heads of queries and ${kvHeads} of keys, with a ` +
      `total_sequence_length of ${total} and caches of ${angles} cosines`,
  );
}

/** A cache with each batch's new rows after its old ones, followed by zeros. */
function appended(
  f: Formula,
  past: MlOperand | undefined,
  now: MlOperand,
  before: MlOperand,
  { batch, rows, capacity }: Sizes,
): MlOperand {
  const at = f.plain('sub', f.constant(range(capacity), [1, 1, capacity, 1]), before);
  // TFLite's gatherElements requires constant indices.
  const each = Array.from({ length: batch }, (_, i) => {
    const [own, index] = [now, f.of('min', f.of('max', at, 0), rows - 1)].map((one) => f.part(one, 0, i, 1));
    return f.plain('gather', own, f.reshape(index, [capacity]), { axis: 2 });
  });
  const moved = batch === 1 ? each[0] : f.plain('concat', each, 0);
  const isNew = f.plain('logicalAnd', f.of('greaterOrEqual', at, 0), f.of('lesser', at, rows));
  const room = past && f.padded(past, [0, 0, 0, 0], [0, 0, capacity - past.shape[2], 0]);
  const old = room ? f.plain('where', f.of('lesser', at, 0), room, f.number(room, 0)) : f.number(now, 0);
  return f.plain('where', isNew, moved, old);
}

/** The place of each new row, [batch, rows]. */
function placesOf(f: Formula, before: MlOperand, given: MlOperand | undefined, sizes: Sizes): MlOperand {
  const { batch, rows, total } = sizes;
  const steps = f.constant(range(rows), [1, rows]);
  if (!given) return f.plain('add', f.reshape(before, [batch, 1]), steps);
  const places = f.reshape(f.cast(given, 'int32'), [batch, rows]);
  // If no tokens precede, onnxruntime reads the first position only.
  if (total !== rows) return places;
  const first = f.part(f.part(places, 0, 0, 1), 1, 0, 1);
  return f.plain('expand', f.plain('add', first, steps), [batch, rows]);
}

const groupQuery = (call: Call): Emit => {
  const { attributes, wants } = call;
  const sizes = sizesOf(call);
  const { batch, rows, heads, kvHeads, size, total } = sizes;
  return (f, x) => {
    const from = (i: number, offset: number, count: number) =>
      x[KEY] ? inHeads(f, x[i], count) : inHeads(f, x[QUERY], count, offset * size, size);
    const [q, k, v] = [from(QUERY, 0, heads), from(KEY, heads, kvHeads), from(KEY + 1, heads + kvHeads, kvHeads)];
    const lengths = f.of('add', f.reshape(f.cast(x[LENGTHS], 'int32'), [batch, 1, 1, 1]), 1);
    const before =
      total === rows ? f.constant(new Array<number>(batch).fill(0), [batch, 1, 1, 1]) : f.of('sub', lengths, rows);
    const turns = attributes.integer('do_rotary', 0) !== 0;
    const table = () => {
      const places = placesOf(f, before, x[POSITIONS], sizes);
      return [x[COSINE], x[COSINE + 1]].map((cache) => angles(f, cache, places));
    };
    const interleaved = attributes.integer('rotary_interleaved', 0) !== 0;
    const [turnedQ, turnedK] = turns ? [q, k].map((one) => rotated(f, one, table(), interleaved)) : [q, k];
    const [keys, values] = [turnedK, v].map((now, i) => appended(f, x[PAST_KEY + i], now, before, sizes));
    const key = f.constant(range(total), [1, 1, 1, total]);
    const place = f.plain('add', before, f.constant(range(rows), [1, 1, rows, 1]));
    const window = attributes.integer('local_window_size', -1);
    let seen = f.plain('lesser', key, lengths);
    if (attributes.integer('causal', 1) !== 0) seen = both(f, seen, f.plain('lesserOrEqual', key, place));
    if (window > 0) seen = both(f, seen, f.plain('greater', key, f.of('sub', place, window)));
    const smooth = attributes.integer('smooth_softmax', 0) === 1;
    const { y } = attend(f, [turnedQ, f.part(keys, 2, 0, total), f.part(values, 2, 0, total)], {
      scale: attributes.number('scale', 0) || 1 / Math.sqrt(size),
      softcap: attributes.number('softcap', 0),
      seen,
      added: x[BIAS] && f.cast(x[BIAS], 'float32'),
      sink: x[SINK]
        ? f.reshape(f.cast(x[SINK], 'float32'), [1, heads, 1, 1])
        : smooth
          ? f.constant([0], [1, 1, 1, 1], 'float32')
          : undefined,
    });
    const out = f.cast(inRows(f, y), q.dataType);
    return wants.slice(1).some(Boolean) ? [out, keys, values] : out;
  };
};

const [quantized, normalized] = ['a quantized cache', 'normalized queries and keys'];

export default [
  {
    op: 'GroupQueryAttention',
    domain: MICROSOFT_DOMAIN,
    types: [FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, ['int32'], [], FLOATS, FLOATS, ['int64'], FLOATS, FLOATS],
    requires: [
      { attribute: 'sliding_window_cache', values: [0], otherwise: 'sliding_window_cache' },
      { noOutput: 3, otherwise: 'scores as an output' },
      { noInput: 12, otherwise: quantized },
      { noInput: 13, otherwise: quantized },
      { noInput: 14, otherwise: normalized },
      { noInput: 15, otherwise: normalized },
    ],
    emit: groupQuery,
  },
] satisfies MlOperator[];
