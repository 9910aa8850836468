// The keys that a query sees: masks, causality, windows, padding. Part of every shader that reads scores.
import type { Binding, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { orNan } from '../../wgsl/math';
import type { Mask } from './mask';

/** The restrictions on a query's keys. */
export interface Masking {
  readonly masks: readonly Mask[];
  /** Where it is 0, a score counts as 0 before masks are added. */
  readonly kept?: Mask;
  /** The number that masks of integers add where they are 0, instead of masking. */
  readonly fill?: number;
  readonly causal: boolean;
  /** Keys before and after a query's own position that it sees; -1: all. */
  readonly left: number;
  readonly right: number;
  /** Position of the first query, if `place` is `past`. */
  readonly past: number;
  /** Number of valid keys, for each batch, minus `more`. */
  readonly lengths?: Tensor;
  readonly more?: number;
  /**
   * The queries come after `past` keys (the default), are the last of the valid ones, or are so unless there are fewer
   * of those.
   */
  readonly place?: 'past' | 'end' | 'appended';
  readonly softcap: number;
  /** A query that sees no key yields NaN, like a Softmax written out in ONNX; otherwise zeros. */
  readonly nanRows?: boolean;
  /** A score in the softmax that has no value: 0, or one for each head. */
  readonly sink?: Tensor | 0;
}

interface MaskSpec extends Spec {
  readonly storage: StorageType;
  readonly ranges: 'none' | 'ends' | 'both';
}

export interface MaskingSpec extends Spec {
  readonly masks: readonly MaskSpec[];
  readonly kept: boolean;
  readonly fill: boolean;
  readonly positions: boolean;
  readonly lengths: boolean;
  readonly place: 'past' | 'end' | 'appended';
  readonly softcap: boolean;
  readonly sink: 'none' | 'zero' | 'given';
}

/** The score of a key that is masked out. LEAST is that of a visible one, for any finite number that a mask adds. */
export const MASKED = '-3.4028234663852886e38';
export const LEAST = '-3.4028230607370965e38';

/** Names for Dispatch.i32 and Dispatch.f32. */
export const MASKING_I32 = ['past', 'left', 'right', 'more'];
export const MASKING_F32 = ['softcap', 'fill', 'unseen'];

export interface MaskingParts {
  readonly spec: MaskingSpec;
  readonly inputs: { [name: string]: Binding };
  readonly uniforms: { [name: string]: number | readonly number[] };
}

/** The uniform u.unseen: the factor of weights without a sum. They are zeros. */
export const unseen = ({ nanRows }: Masking): number => (nanRows ? NaN : 0);

/** WGSL that turns shares, which add up to `sum`, into weights. */
export const shareOf = (sum: string): string => `select(1.0 / ${sum}, u.unseen, ${sum} == 0.0)`;

export function maskingParts(r: Masking): MaskingParts {
  const positions = r.causal || r.left >= 0 || r.right >= 0;
  const inputs: MaskingParts['inputs'] = {};
  const uniforms: MaskingParts['uniforms'] = { unseen: unseen(r) };
  r.masks.forEach(({ tensor, strides, length, ranges }, i) => {
    inputs[`mask${i}`] = tensor;
    if (ranges === undefined) Object.assign(uniforms, { [`mask${i}`]: strides, [`mask${i}_length`]: length });
    else if (ranges > 0) uniforms[`mask${i}_starts`] = ranges;
  });
  if (r.kept) {
    inputs.kept = r.kept.tensor;
    uniforms.kept = r.kept.strides;
  }
  if (r.fill !== undefined) uniforms.fill = r.fill;
  if (r.lengths) {
    inputs.lengths = r.lengths;
    uniforms.more = r.more ?? 0;
  }
  if (positions) {
    const far = 2 ** 30;
    Object.assign(uniforms, {
      past: r.past,
      left: r.left < 0 ? far : r.left,
      right: Math.min(r.causal ? 0 : far, r.right < 0 ? far : r.right),
    });
  }
  if (r.softcap !== 0) uniforms.softcap = r.softcap;
  if (r.sink) inputs.sink = r.sink;
  const spec: MaskingSpec = {
    masks: r.masks.map(({ tensor, ranges }) => ({
      storage: tensor.storage,
      ranges: ranges === undefined ? 'none' : ranges > 0 ? 'both' : 'ends',
    })),
    kept: r.kept !== undefined,
    fill: r.fill !== undefined,
    positions,
    lengths: r.lengths !== undefined,
    place: r.lengths ? (r.place ?? 'past') : 'past',
    softcap: r.softcap !== 0,
    sink: r.sink === undefined ? 'none' : r.sink === 0 ? 'zero' : 'given',
  };
  return { spec, inputs, uniforms };
}

const PLACES = { past: 'u.past', end: 'length - i32(u.queries)', appended: 'max(length - i32(u.queries), 0)' };

/**
 * WGSL of `capped(raw)`, of `seen(batch, head, query, key, score)`, the score with masks added, or MASKED, of
 * `sink_of(head)`, and of the range outside which a query sees no keys: `begin_of(batch, query)`, `end_of(batch,
 * query)`. u.queries and u.keys must exist.
 */
export function maskingText({ masks, kept, fill, positions, lengths, place, softcap, sink }: MaskingSpec): string {
  const lines: string[] = [];
  const conditions: string[] = [];
  const adds: string[] = [];
  const integers = (masked: string) => (fill ? adds.push(`select(0.0, u.fill, ${masked})`) : conditions.push(masked));
  masks.forEach(({ storage, ranges }, i) => {
    if (ranges !== 'none') {
      const before = ranges === 'both' ? ` | (i32(key) < mask${i}[u.mask${i}_starts + batch])` : '';
      lines.push(`  let value${i} = (i32(key) >= mask${i}[batch])${before};`);
      integers(`value${i}`);
      return;
    }
    lines.push(
      `  let value${i} = mask${i}[batch * u.mask${i}_0 + head * u.mask${i}_1 + query * u.mask${i}_2
          + min(key, u.mask${i}_length - 1u) * u.mask${i}_3];`,
    );
    conditions.push(`key >= u.mask${i}_length`);
    if (storage === 'u32' || storage === 'i32') integers(`value${i} == ${storage}(0)`);
    else {
      // Tests bits: a compiler may assume that there are no infinities.
      conditions.push(`bitcast<u32>(f32(value${i})) == 0xff800000u`);
      adds.push(`f32(value${i})`);
    }
  });
  const begin: string[] = ['0'];
  const end: string[] = ['i32(u.keys)'];
  const length = lengths ? '  let length = lengths[batch] + u.more;\n' : '';
  if (lengths) {
    conditions.push('i32(key) >= length');
    end.push('length');
  }
  const own = positions ? `  let place = i32(query) + ${PLACES[place]};\n` : '';
  if (positions) {
    conditions.push('i32(key) > place + u.right', 'i32(key) < place - u.left');
    begin.push('place - u.left');
    end.push('place + u.right + 1');
  }
  const cap = softcap ? 'or_nan(u.softcap * tanh(clamp(raw / u.softcap, -15.0, 15.0)), raw)' : 'raw';
  if (kept) {
    lines.push('  let keeps = kept[batch * u.kept_0 + head * u.kept_1 + query * u.kept_2 + key * u.kept_3] != 0u;');
    adds.unshift('select(0.0, score, keeps)');
  } else adds.unshift('score');
  const sum = adds.length > 1 ? 'select(sum, least, sum < least)' : adds[0];
  if (adds.length > 1) lines.push(`  let sum = ${adds.join(' + ')};`, `  let least = f32(${LEAST});`);
  // Without branches (no ||): a software adapter's compiler needs minutes for those of a whole tile of scores.
  const masked = conditions.map((condition) => `(${condition})`).join(' | ');
  const nested = (operation: string, terms: readonly string[]) =>
    terms.reduce((all, term) => `${operation}(${all}, ${term})`);
  return `${orNan('or_nan', 'f32', 'i32')}
fn weight_of(score: f32, largest: f32) -> f32 {
  let d = score - largest;
  return select(or_nan(exp(d), d), 0.0, score == ${MASKED});
}
fn capped(raw: f32) -> f32 { return ${cap}; }
fn seen(batch: u32, head: u32, query: u32, key: u32, score: f32) -> f32 {
${length}${own}${lines.join('\n')}
  return ${conditions.length > 0 ? `select(${sum}, ${MASKED}, ${masked})` : sum};
}
fn begin_of(batch: u32, query: u32) -> u32 {
${length}${own}  return u32(${nested('max', begin)});
}
fn end_of(batch: u32, query: u32) -> u32 {
${length}${own}  return u32(max(0, ${nested('min', end)}));
}
${
  sink === 'none'
    ? ''
    : `fn sink_of(head: u32) -> f32 { return ${sink === 'zero' ? '0.0' : 'f32(sink[head])'}; }
`
}`;
}
