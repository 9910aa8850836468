// What hides keys from queries: masks, causality, windows, padding. Part of every shader that looks at scores.
import type { Binding, Spec, StorageType, Tensor } from '../../jsep/kernel';

/** A mask to broadcast to [batch, heads, queries, keys]; one of truths or integers hides where it is 0, one of floats is added. */
export interface Mask {
  readonly tensor: Tensor;
  readonly strides: readonly [number, number, number, number];
  /** Keys from here on are hidden. */
  readonly length: number;
}

export interface Hiding {
  readonly masks: readonly Mask[];
  readonly causal: boolean;
  /** Keys before and after a query's own position that it sees; -1: all. */
  readonly left: number;
  readonly right: number;
  /** Position of the first query. */
  readonly past: number;
  /** Number of keys that count, for each batch. */
  readonly lengths?: Tensor;
  /** Whether the queries are the last of the keys that count, and not those after `past`. */
  readonly atEnd?: boolean;
  readonly softcap: number;
}

export interface HidingSpec extends Spec {
  readonly masks: readonly StorageType[];
  readonly positions: boolean;
  readonly lengths: boolean;
  readonly atEnd: boolean;
  readonly softcap: boolean;
}

/** The score of a key that is hidden; LEAST is that of one that is seen, but masked by a finite number, however large. */
export const HIDDEN = '-3.4028234663852886e38';
export const LEAST = '-3.4028230607370965e38';

/** Names for Dispatch.i32 and Dispatch.f32. */
export const HIDING_I32 = ['past', 'left', 'right'];
export const HIDING_F32 = ['softcap'];

export function hidingParts(r: Hiding): { spec: HidingSpec; inputs: { [name: string]: Binding }; uniforms: { [name: string]: number | readonly number[] } } {
  const positions = r.causal || r.left >= 0 || r.right >= 0;
  const inputs: { [name: string]: Binding } = {};
  const uniforms: { [name: string]: number | readonly number[] } = {};
  r.masks.forEach(({ tensor, strides, length }, i) => {
    inputs[`mask${i}`] = tensor;
    uniforms[`mask${i}`] = strides;
    uniforms[`mask${i}_length`] = length;
  });
  if (r.lengths) inputs.lengths = r.lengths;
  if (positions) {
    const far = 2 ** 30;
    Object.assign(uniforms, { past: r.past, left: r.left < 0 ? far : r.left, right: Math.min(r.causal ? 0 : far, r.right < 0 ? far : r.right) });
  }
  if (r.softcap !== 0) uniforms.softcap = r.softcap;
  const spec: HidingSpec = {
    masks: r.masks.map(({ tensor }) => tensor.storage), positions, lengths: r.lengths !== undefined, atEnd: r.atEnd ?? false, softcap: r.softcap !== 0,
  };
  return { spec, inputs, uniforms };
}

/** WGSL of `capped(raw)` and `seen(batch, head, query, key, score)`, the score with masks added, or HIDDEN. u.queries must be there. */
export function hidingText({ masks, positions, lengths, atEnd, softcap }: HidingSpec): string {
  const lines: string[] = [];
  const hides: string[] = [];
  const adds: string[] = [];
  masks.forEach((storage, i) => {
    lines.push(`  let value${i} = mask${i}[batch * u.mask${i}_0 + head * u.mask${i}_1 + query * u.mask${i}_2 + min(key, u.mask${i}_length - 1u) * u.mask${i}_3];`);
    hides.push(`key >= u.mask${i}_length`);
    if (storage === 'u32' || storage === 'i32') hides.push(`value${i} == ${storage}(0)`);
    else {
      // By bits: a compiler may assume that there are no infinities.
      hides.push(`bitcast<u32>(f32(value${i})) == 0xff800000u`);
      adds.push(`f32(value${i})`);
    }
  });
  if (lengths) hides.push('i32(key) >= lengths[batch]');
  if (positions) {
    lines.push(`  let place = i32(query) + ${lengths && atEnd ? 'lengths[batch] - i32(u.queries)' : 'u.past'};`);
    hides.push('i32(key) > place + u.right', 'i32(key) < place - u.left');
  }
  const cap = softcap ? 'u.softcap * tanh(clamp(raw / u.softcap, -15.0, 15.0))' : 'raw';
  const sum = adds.length > 0 ? `max(${['score', ...adds].join(' + ')}, ${LEAST})` : 'score';
  // Without branches (no ||): a software adapter's compiler takes minutes over those of a whole tile of scores.
  const hidden = hides.map((condition) => `(${condition})`).join(' | ');
  return `fn capped(raw: f32) -> f32 { return ${cap}; }
fn seen(batch: u32, head: u32, query: u32, key: u32, score: f32) -> f32 {
${lines.join('\n')}
  return ${hides.length > 0 ? `select(${sum}, ${HIDDEN}, ${hidden})` : sum};
}
`;
}
