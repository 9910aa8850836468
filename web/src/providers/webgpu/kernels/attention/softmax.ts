// The softmax of attention scores in memory.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../../../contract/kernel';
import { inLanes, type Lanes, load, stored } from '../../wgsl/lanes';
import { mathFunctions } from '../../wgsl/math';
import { dispatchRows, type RowLayout, rowMain, rowsOf } from '../shared/rows';
import {
  MASKED,
  type Masking,
  MASKING_F32,
  MASKING_I32,
  maskingParts,
  type MaskingSpec,
  maskingText,
  shareOf,
  LEAST,
} from './masking';

export interface AttentionRows extends Masking {
  /** [batch, heads, queries, keys] */
  readonly scores: Tensor;
  readonly probabilities: Tensor;
  readonly dims: readonly [number, number, number, number];
  /** Scores after softcap (1) or after masks too (2). */
  readonly debug?: { readonly mode: 1 | 2; readonly tensor: Tensor };
}

interface AttentionSpec extends Spec {
  readonly layout: RowLayout;
  readonly from: StorageType;
  readonly to: StorageType;
  readonly masking: MaskingSpec;
  readonly debug: 0 | 1 | 2;
  readonly debugStorage?: StorageType;
}

export function attentionSoftmax(ctx: Context, r: AttentionRows): void {
  const [batch, heads, queries, keys] = r.dims;
  const rows = rowsOf(ctx, batch * heads * queries, keys, 1);
  const masking = maskingParts(r);
  const spec: AttentionSpec = {
    layout: rows.layout,
    from: r.scores.storage,
    to: r.probabilities.storage,
    masking: masking.spec,
    debug: r.debug?.mode ?? 0,
    debugStorage: r.debug?.tensor.storage,
  };
  const dispatch = {
    shader: { name: `attention_softmax__team_${rows.layout.team}`, wgsl } satisfies Shader<AttentionSpec>,
    spec,
    inputs: { scores: inLanes(r.scores, rows.lanes), ...masking.inputs },
    outputs: {
      y: inLanes(r.probabilities, rows.lanes),
      ...(r.debug && { debug: inLanes(r.debug.tensor, rows.lanes) }),
    },
    uniforms: { ...rows.uniforms, heads, queries, keys, ...masking.uniforms },
    i32: MASKING_I32,
    f32: MASKING_F32,
    workgroups: rows.workgroups,
  };
  dispatchRows(ctx, dispatch, { largest: 'F', share: 'F' });
}

function wgsl({ layout, from, to, masking, debug, debugStorage }: AttentionSpec): string {
  const lanes: Lanes = layout.wide === 'none' ? 1 : 4;
  const each = (line: (raw: string, key: string) => string, raw: string) =>
    lanes === 1 ? line(raw, 'k') : `F(${[0, 1, 2, 3].map((t) => line(`${raw}[${t}]`, `k[${t}]`)).join(', ')})`;
  const weights = each((x) => `weight_of(${x}, largest)`, 'x');
  const write = [`y[at] = ${stored(to, lanes, 'weight * share')};`];
  if (debug === 1) write.push(`debug[at] = ${stored(debugStorage!, lanes, 'score')};`);
  if (debug === 2)
    write.push(`debug[at] = ${stored(debugStorage!, lanes, `select(x, F(-infinity()), x == F(${MASKED}))`)};`);
  return (
    maskingText(masking) +
    (debug === 2 ? mathFunctions('infinity') : '') +
    rowMain({
      layout,
      prepare:
        'let query = row % u.queries; let head = row / u.queries % u.heads; let batch = row / u.queries / u.heads;',
      element: `let raw = ${load(from, lanes, 'scores[at]')};
    let score = ${each((raw) => `capped(${raw})`, 'raw')};
    let x = ${each((score, key) => `seen(batch, head, query, ${key}, ${score})`, 'score')};`,
      phases: [
        {
          accumulators: [{ name: 'largest', type: 'F', start: LEAST }],
          step: 'largest = max(largest, x);',
          merge: 'largest = max(largest, other_largest);',
        },
        {
          accumulators: [{ name: 'total', type: 'F', start: '0.0' }],
          step: `total += ${weights};`,
          merge: 'total += other_total;',
          after: `${masking.sink === 'none' ? '' : 'total += exp(sink_of(head) - largest);'}
            let share = ${shareOf('total')};`,
        },
      ],
      write: `let weight = ${weights}; ${write.join(' ')}`,
    })
  );
}
