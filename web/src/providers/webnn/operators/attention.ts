// Attention by its parts, in floats. All masks together are one tensor that is added to the scores.
import type { Attributes } from '../../../contract/attributes';
import type { DTypeName } from '../../../contract/kernel';
import { DType } from '../../../schema';
import type { Formula } from '../formula';
import type { MlDataType, MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { range } from './shared/calls';

const [MASK, PAST_KEY, LENGTHS, KEPT] = [3, 4, 6, 7];
/** What is added to the score of a key that is masked out; LEAST is the least that a mask adds to others. */
const MASKED = -3.4028234663852886e38;
const LEAST = -3.4028230607370965e38;

const number = (f: Formula, value: number, type: MlDataType = 'float32') => f.constant([value], [], type);

/** [batch, heads, positions, size] of an input of rank 3 or 4, or of columns of it. */
function inHeads(f: Formula, x: MlOperand, heads: number, offset?: number, size?: number): MlOperand {
  if (x.shape.length === 4) return x;
  const columns = offset === undefined || size === undefined ? x : f.part(x, 2, offset, heads * size);
  const [batch, positions, width] = columns.shape;
  const apart = f.reshape(columns, [batch, positions, heads, width / heads]);
  return f.plain('transpose', apart, { permutation: [0, 2, 1, 3] });
}

/** Heads that share keys are rows of one. */
function multiplied(f: Formula, a: MlOperand, b: MlOperand): MlOperand {
  const [batch, heads, rows, inner] = a.shape;
  const shared = b.shape[1];
  const y = f.plain('matmul', f.reshape(a, [batch, shared, (heads / shared) * rows, inner]), b);
  return f.reshape(y, [Math.max(batch, b.shape[0]), heads, rows, b.shape[3]]);
}

interface Masks {
  /** uint8, broadcasts to the scores; undefined: every query sees every key. */
  seen: MlOperand | undefined;
  /** Of float32. */
  added: MlOperand | undefined;
  /** Whether each query sees a key whatever the masks are. */
  whole: boolean;
}

function both(f: Formula, a: MlOperand | undefined, b: MlOperand): MlOperand {
  return a ? f.plain('logicalAnd', a, b) : b;
}

/** What masks say, each by itself. */
function masksOf(
  f: Formula,
  { attributes, inputs }: Call,
  x: readonly MlOperand[],
  [rows, keys, past]: readonly number[],
): Masks {
  const masks: Masks = { seen: undefined, added: undefined, whole: true };
  const lengths = x[LENGTHS] && f.reshape(f.cast(x[LENGTHS], 'int32'), [x[LENGTHS].shape[0], 1, 1, 1]);
  const key = () => f.constant(range(keys), [1, 1, 1, keys]);
  const [left, right] = [attributes.integer('left_window_size', -1), attributes.integer('right_window_size', -1)];
  // How many keys before and after its own a query sees; -1: all.
  const after = attributes.integer('is_causal', 0) !== 0 ? 0 : right;
  const own = f.constant(range(rows, lengths ? -rows : past), [1, 1, rows, 1]);
  const place = lengths ? f.plain('add', own, lengths) : own;
  const moved = (by: number) => f.plain('add', place, f.constant([by], []));
  if (after >= 0) masks.seen = f.plain('lesserOrEqual', key(), moved(after));
  if (left >= 0) masks.seen = both(f, masks.seen, f.plain('greaterOrEqual', key(), moved(-left)));
  if (lengths) masks.seen = both(f, masks.seen, f.plain('lesser', key(), lengths));
  masks.whole = !lengths && left < 0;
  const mask = x[MASK];
  if (!mask) return masks;
  masks.whole = false;
  const four = f.reshape(mask, [...new Array<number>(4 - mask.shape.length).fill(1), ...mask.shape]);
  const pads = attributes.integer('mask_broadcasts', 0) !== 0 ? 0 : Math.max(keys - (four.shape[3] ?? 1), 0);
  const wide = (one: MlOperand, value: number) => f.padded(one, [0, 0, 0, 0], [0, 0, 0, pads], value);
  if (inputs[MASK]!.dtype === DType.bool_) {
    masks.seen = both(f, masks.seen, wide(four, 0));
    return masks;
  }
  const added = wide(f.cast(four, 'float32'), -Infinity);
  masks.seen = both(f, masks.seen, f.plain('greater', added, number(f, -Infinity)));
  masks.added = f.plain('max', added, number(f, LEAST));
  return masks;
}

const scaleOf = (attributes: Attributes, size: number) => attributes.number('scale', 0) || 1 / Math.sqrt(size);

const attention =
  (call: Call): Emit =>
  (f, given) => {
    const { attributes, inputs, wants } = call;
    const offsets = attributes.integers('offsets');
    const sizes = attributes.integers('head_sizes');
    const heads = [
      attributes.integer('q_num_heads', 0),
      ...new Array<number>(2).fill(attributes.integer('kv_num_heads', 0)),
    ];
    const [q, ...parts] = heads.map((count, i) => inHeads(f, given[i], count, offsets[i], sizes[i === 2 ? 1 : 0]));
    const [k, v] = parts.map((one, i) => {
      const before = given[PAST_KEY + i];
      return before ? f.plain('concat', [before, one], 2) : one;
    });
    const past = given[PAST_KEY]?.shape[2] ?? 0;
    const broadcasts = attributes.integer('mask_broadcasts', 0) !== 0;
    const ofMasks = [MASK, KEPT].map((i) => inputs[i]?.dims.at(-2) ?? 1);
    const rows = q.shape[2] === 1 && broadcasts ? Math.max(...ofMasks) : q.shape[2];
    const [query, keys, values] = [q, k, v].map((one) => f.cast(one, 'float32'));
    const scaled = f.plain('mul', query, number(f, scaleOf(attributes, q.shape[3])));
    const raw = multiplied(f, scaled, f.plain('transpose', keys, { permutation: [0, 1, 3, 2] }));
    const cap = attributes.number('softcap', 0);
    const limit = () => number(f, cap);
    const capped = cap === 0 ? raw : f.plain('mul', f.plain('tanh', f.plain('div', raw, limit())), limit());
    const kept = given[KEPT];
    const scores = kept ? f.plain('where', kept, capped, number(f, 0)) : capped;
    const { seen, added, whole } = masksOf(f, call, given, [rows, k.shape[2], past]);
    const bias = seen && f.plain('where', seen, added ?? number(f, 0), number(f, MASKED));
    const masked = bias ? f.plain('add', scores, bias) : scores;
    const shares = f.plain('softmax', masked, 3);
    const unseen = number(f, attributes.integer('nan_rows', 0) !== 0 ? NaN : 0);
    const any = (): MlOperand => {
      const counted = f.plain('reduceMax', f.cast(seen!, 'int32'), { axes: [3], keepDimensions: true });
      return f.cast(counted, 'uint8');
    };
    const probabilities = seen && !whole ? f.plain('where', any(), shares, unseen) : shares;
    const y = multiplied(f, probabilities, values);
    const [batch, count, positions, size] = y.shape;
    const flat = () =>
      f.reshape(f.plain('transpose', y, { permutation: [0, 2, 1, 3] }), [batch, positions, count * size]);
    const out = f.cast(given[0].shape.length === 3 ? flat() : y, given[0].dataType);
    if (!wants.slice(1).some(Boolean)) return out;
    const told = () => {
      const gone = number(f, -Infinity);
      const stages = [raw, capped, seen ? f.plain('where', seen, masked, gone) : masked, probabilities];
      return f.cast(stages[attributes.integer('qk_matmul_output_mode', 0)], given[0].dataType);
    };
    return [out, k, v, ...(wants[3] ? [told()] : [])];
  };

const TRUTHS: readonly DTypeName[] = ['bool'];

export default [
  {
    op: 'Attention',
    types: [FLOATS, FLOATS, FLOATS, [...FLOATS, ...TRUTHS], FLOATS, FLOATS, ['int64', 'int32'], TRUTHS],
    emit: attention,
  },
] satisfies MlOperator[];
