// Attention by its parts, in floats. All masks are combined into one tensor that is added to the scores.
import type { DTypeName } from '../../../contract/kernel';
import { DType } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, type Emit, FLOATS, type MlOperator } from '../operator';
import { attend, both, inHeads, inRows, LEAST, number } from './shared/attend';
import { range } from './shared/calls';
import { Dialect, Place } from '../../../schema/dialect';

interface Masks {
  /** uint8, broadcasts to the scores; undefined: every query sees every key. */
  seen: MlOperand | undefined;
  /** Of type float32. */
  added: MlOperand | undefined;
  /** True if each query sees a key with any masks. */
  whole: boolean;
}

/** The effect of each mask. */
function masksOf(
  f: Formula,
  { attributes, inputs }: Call,
  x: readonly MlOperand[],
  [rows, keys, past]: readonly number[],
): Masks {
  const masks: Masks = { seen: undefined, added: undefined, whole: true };
  const lengths =
    x[Place.ATTENTION_LENGTHS] &&
    f.reshape(f.cast(x[Place.ATTENTION_LENGTHS], 'int32'), [x[Place.ATTENTION_LENGTHS].shape[0], 1, 1, 1]);
  const key = () => f.constant(range(keys), [1, 1, 1, keys]);
  const [left, right] = [attributes.integer('left_window_size', -1), attributes.integer('right_window_size', -1)];
  // Number of keys before and after its own that a query sees; -1: all.
  const after = attributes.integer('is_causal', 0) !== 0 ? 0 : right;
  const own = f.constant(range(rows, lengths ? -rows : past), [1, 1, rows, 1]);
  const place = lengths ? f.plain('add', own, lengths) : own;
  const moved = (by: number) => f.plain('add', place, f.constant([by], []));
  if (after >= 0) masks.seen = f.plain('lesserOrEqual', key(), moved(after));
  if (left >= 0) masks.seen = both(f, masks.seen, f.plain('greaterOrEqual', key(), moved(-left)));
  if (lengths) masks.seen = both(f, masks.seen, f.plain('lesser', key(), lengths));
  masks.whole = !lengths && left < 0;
  const mask = x[Place.ATTENTION_MASK];
  if (!mask) return masks;
  masks.whole = false;
  const four = f.reshape(mask, [...new Array<number>(4 - mask.shape.length).fill(1), ...mask.shape]);
  const pads = attributes.integer(Dialect.MASK_BROADCASTS, 0) !== 0 ? 0 : Math.max(keys - (four.shape[3] ?? 1), 0);
  const wide = (one: MlOperand, value: number) => f.padded(one, [0, 0, 0, 0], [0, 0, 0, pads], value);
  if (inputs[Place.ATTENTION_MASK]!.dtype === DType.bool_) {
    masks.seen = both(f, masks.seen, wide(four, 0));
    return masks;
  }
  const added = wide(f.cast(four, 'float32'), -Infinity);
  masks.seen = both(f, masks.seen, f.plain('greater', added, number(f, -Infinity)));
  masks.added = f.plain('max', added, number(f, LEAST));
  return masks;
}

const attention =
  (call: Call): Emit =>
  (f, given) => {
    const { attributes, inputs, wants } = call;
    const offsets = attributes.integers(Dialect.OFFSETS);
    const sizes = attributes.integers(Dialect.HEAD_SIZES);
    const heads = [
      attributes.integer('q_num_heads', 0),
      ...new Array<number>(2).fill(attributes.integer('kv_num_heads', 0)),
    ];
    const [q, ...parts] = heads.map((count, i) => inHeads(f, given[i], count, offsets[i], sizes[i === 2 ? 1 : 0]));
    const [k, v] = parts.map((one, i) => {
      const before = given[Place.ATTENTION_PAST_KEY + i];
      return before ? f.plain('concat', [before, one], 2) : one;
    });
    const past = given[Place.ATTENTION_PAST_KEY]?.shape[2] ?? 0;
    const broadcasts = attributes.integer(Dialect.MASK_BROADCASTS, 0) !== 0;
    const ofMasks = [Place.ATTENTION_MASK, Place.ATTENTION_KEPT].map((i) => inputs[i]?.dims.at(-2) ?? 1);
    const rows = q.shape[2] === 1 && broadcasts ? Math.max(...ofMasks) : q.shape[2];
    const { seen, added, whole } = masksOf(f, call, given, [rows, k.shape[2], past]);
    const { y, stages } = attend(f, [q, k, v], {
      scale: attributes.number('scale', 0) || 1 / Math.sqrt(q.shape[3]),
      softcap: attributes.number('softcap', 0),
      kept: given[Place.ATTENTION_KEPT],
      seen,
      added: seen && added,
      unseen: whole ? undefined : attributes.integer(Dialect.NAN_ROWS, 0) !== 0 ? NaN : 0,
    });
    const out = f.cast(given[0].shape.length === 3 ? inRows(f, y) : y, given[0].dataType);
    if (!wants.slice(1).some(Boolean)) return out;
    const told = () => f.cast(stages()[attributes.integer('qk_matmul_output_mode', 0)], given[0].dataType);
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
