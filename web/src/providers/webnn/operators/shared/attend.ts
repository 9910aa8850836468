// Attention over heads [batch, heads, positions, size], in float32.
import type { MlDataType, MlOperand } from '../../ml';
import type { Formula } from '../../formula';

/** The score of a key that is masked out; LEAST is the lowest score of other keys after a mask is added. */
const MASKED = -3.4028234663852886e38;
export const LEAST = -3.4028230607370965e38;

export const number = (f: Formula, value: number, type: MlDataType = 'float32') => f.constant([value], [], type);

export const both = (f: Formula, a: MlOperand | undefined, b: MlOperand): MlOperand =>
  a ? f.plain('logicalAnd', a, b) : b;

/** Heads of [batch, positions, heads * size], or of its columns; a tensor of four axes already is heads. */
export function inHeads(f: Formula, x: MlOperand, heads: number, offset?: number, size?: number): MlOperand {
  if (x.shape.length === 4) return x;
  const columns = offset === undefined || size === undefined ? x : f.part(x, 2, offset, heads * size);
  const [batch, positions, width] = columns.shape;
  const apart = f.reshape(columns, [batch, positions, heads, width / heads]);
  return f.plain('transpose', apart, { permutation: [0, 2, 1, 3] });
}

/** Heads to [batch, positions, heads * size]. */
export function inRows(f: Formula, x: MlOperand): MlOperand {
  const [batch, heads, positions, size] = x.shape;
  return f.reshape(f.plain('transpose', x, { permutation: [0, 2, 1, 3] }), [batch, positions, heads * size]);
}

/** Heads that share keys become rows of one head. */
function multiplied(f: Formula, a: MlOperand, b: MlOperand): MlOperand {
  const [batch, heads, rows, inner] = a.shape;
  const shared = b.shape[1];
  const y = f.plain('matmul', f.reshape(a, [batch, shared, (heads / shared) * rows, inner]), b);
  return f.reshape(y, [Math.max(batch, b.shape[0]), heads, rows, b.shape[3]]);
}

interface Problem {
  readonly scale: number;
  /** 0: scores have no cap. */
  readonly softcap: number;
  /** uint8, broadcasts to the scores: where it is 0, a score counts as 0 before masks are added. */
  readonly kept?: MlOperand;
  /** uint8, broadcasts to the scores; undefined: every query sees every key. */
  readonly seen?: MlOperand;
  /** Added to the scores, broadcasts. */
  readonly added?: MlOperand;
  /** The result for a query that sees no key; set if there may be one. */
  readonly unseen?: number;
  /** A score in addition to those of the keys, without a value: [1, heads, 1, 1]. */
  readonly sink?: MlOperand;
}

interface Attended {
  readonly y: MlOperand;
  /** Raw scores, and scores with a cap, with masks, and after the softmax. */
  readonly stages: () => readonly MlOperand[];
}

export function attend(
  f: Formula,
  given: readonly MlOperand[],
  { scale, softcap, kept, seen, added, unseen, sink }: Problem,
): Attended {
  const [query, keys, values] = given.map((one) => f.cast(one, 'float32'));
  const raw = multiplied(f, f.of('mul', query, scale), f.plain('transpose', keys, { permutation: [0, 1, 3, 2] }));
  const capped = softcap === 0 ? raw : f.of('mul', f.of('tanh', f.of('div', raw, softcap)), softcap);
  const scores = kept ? f.of('where', kept, capped, number(f, 0)) : capped;
  const bias = seen ? f.plain('where', seen, added ?? number(f, 0), number(f, MASKED)) : added;
  const masked = bias ? f.plain('add', scores, bias) : scores;
  const shares = sink ? besideSink(f, masked, sink) : f.plain('softmax', masked, 3);
  const any = (): MlOperand => {
    const counted = f.plain('reduceMax', f.cast(seen!, 'int32'), { axes: [3], keepDimensions: true });
    return f.cast(counted, 'uint8');
  };
  const probabilities = seen && unseen !== undefined ? f.plain('where', any(), shares, number(f, unseen)) : shares;
  return {
    y: multiplied(f, probabilities, values),
    stages: () => [raw, capped, seen ? f.plain('where', seen, masked, number(f, -Infinity)) : masked, probabilities],
  };
}

function besideSink(f: Formula, scores: MlOperand, sink: MlOperand): MlOperand {
  const [batch, heads, rows, keys] = scores.shape;
  const column = f.plain('expand', sink, [batch, heads, rows, 1]);
  return f.part(f.plain('softmax', f.plain('concat', [scores, column], 3), 3), 3, 0, keys);
}
