// The softmax of attention scores, with what hides keys from queries: masks, causality, windows, padding.
import type { Binding, Context, Shader, Spec, StorageType, Tensor } from '../../jsep/kernel';
import { inLanes, type Lanes, load, stored } from '../../wgsl/lanes';
import { mathFunctions } from '../../wgsl/math';
import { type RowLayout, rowMain, rowsOf } from '../_rows';

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

export interface AttentionRows extends Hiding {
  /** [batch, heads, queries, keys] */
  readonly scores: Tensor;
  readonly probabilities: Tensor;
  readonly dims: readonly [number, number, number, number];
  /** Scores as they are after softcap (1) or after masks too (2). */
  readonly debug?: { readonly mode: 1 | 2; readonly tensor: Tensor };
}

interface AttentionSpec extends Spec {
  readonly layout: RowLayout;
  readonly from: StorageType;
  readonly to: StorageType;
  readonly masks: readonly StorageType[];
  readonly positions: boolean;
  readonly lengths: boolean;
  readonly atEnd: boolean;
  readonly softcap: boolean;
  readonly debug: 0 | 1 | 2;
  readonly debugStorage?: StorageType;
}

export function attentionSoftmax(ctx: Context, r: AttentionRows): void {
  const [batch, heads, queries, keys] = r.dims;
  const rows = rowsOf(ctx, batch * heads * queries, keys, 1);
  const positions = r.causal || r.left >= 0 || r.right >= 0;
  const spec: AttentionSpec = {
    layout: rows.layout, from: r.scores.storage, to: r.probabilities.storage, masks: r.masks.map(({ tensor }) => tensor.storage), positions,
    lengths: r.lengths !== undefined, atEnd: r.atEnd ?? false, softcap: r.softcap !== 0, debug: r.debug?.mode ?? 0, debugStorage: r.debug?.tensor.storage,
  };
  const inputs: { [name: string]: Binding } = { scores: inLanes(r.scores, rows.lanes) };
  const uniforms: { [name: string]: number | readonly number[] } = { ...rows.uniforms, heads, queries };
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
  if (spec.softcap) uniforms.softcap = r.softcap;
  ctx.dispatch({
    shader: { name: `attention_softmax__team_${rows.layout.team}`, wgsl } satisfies Shader<AttentionSpec>, spec, inputs,
    outputs: { y: inLanes(r.probabilities, rows.lanes), ...(r.debug && { debug: inLanes(r.debug.tensor, rows.lanes) }) },
    uniforms, i32: ['past', 'left', 'right'], f32: ['softcap'], workgroups: rows.workgroups,
  });
}

/** The score of a key that is hidden: no real score is as small. */
const HIDDEN = '-3.4028234663852886e38';

function wgsl({ layout, from, to, masks, positions, lengths, atEnd, softcap, debug, debugStorage }: AttentionSpec): string {
  const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
  const capped = softcap ? 'u.softcap * tanh(clamp(raw / u.softcap, -15.0, 15.0))' : 'raw';
  const hides: string[] = [];
  const adds: string[] = [];
  masks.forEach((storage, i) => {
    const at = `batch * u.mask${i}_0 + head * u.mask${i}_1 + query * u.mask${i}_2 + min(key, u.mask${i}_length - 1u) * u.mask${i}_3`;
    hides.push(`key >= u.mask${i}_length`);
    if (storage === 'u32' || storage === 'i32') hides.push(`mask${i}[${at}] == ${storage}(0)`);
    else adds.push(`f32(mask${i}[${at}])`);
  });
  if (lengths) hides.push('i32(key) >= lengths[batch]');
  if (positions) hides.push('i32(key) > place + u.right', 'i32(key) < place - u.left');
  const apply = `fn capped(raw: f32) -> f32 { return ${capped}; }
fn seen(row: u32, key: u32, score: f32) -> f32 {
  let query = row % u.queries;
  let head = row / u.queries % u.heads;
  let batch = row / u.queries / u.heads;
  ${positions ? `let place = i32(query) + ${lengths && atEnd ? 'lengths[batch] - i32(u.queries)' : 'u.past'};` : ''}
  let hidden = ${hides.length > 0 ? hides.join(' || ') : 'false'};
  return select(max(${['score', ...adds].join(' + ')}, ${HIDDEN}), ${HIDDEN}, hidden);
}
`;
  const each = (line: (raw: string, key: string) => string, raw: string) =>
    lanes === 1 ? line(raw, 'k') : `F(${[0, 1, 2, 3].map((t) => line(`${raw}[${t}]`, `k[${t}]`)).join(', ')})`;
  const write = [`y[at] = ${stored(to, lanes, 'weight * share')};`];
  if (debug === 1) write.push(`debug[at] = ${stored(debugStorage!, lanes, 'score')};`);
  if (debug === 2) write.push(`debug[at] = ${stored(debugStorage!, lanes, `select(x, F(-infinity()), x == F(${HIDDEN}))`)};`);
  return apply + (debug === 2 ? mathFunctions('infinity') : '') + rowMain({
    layout,
    element: `let raw = ${load(from, lanes, 'scores[at]')};
    let score = ${each((raw) => `capped(${raw})`, 'raw')};
    let x = ${each((score, key) => `seen(row, ${key}, ${score})`, 'score')};`,
    phases: [
      { accumulators: [{ name: 'largest', type: 'F', start: HIDDEN }], step: 'largest = max(largest, x);', merge: 'largest = max(largest, other_largest);' },
      {
        accumulators: [{ name: 'total', type: 'F', start: '0.0' }], step: `total += select(exp(x - largest), F(0.0), x == F(${HIDDEN}));`,
        merge: 'total += other_total;', after: 'let share = select(1.0 / total, 0.0, total == 0.0);',
      },
    ],
    write: `let weight = select(exp(x - largest), F(0.0), x == F(${HIDDEN})); ${write.join(' ')}`,
  });
}
