// Combines the results of a row's shares of keys, weighted by the sizes of their scores.
import type { Shader, Spec } from '../../../../contract/kernel';
import { laneType, stored } from '../../wgsl/lanes';
import { linearMain } from '../../wgsl/linear';
import { type FlashSpec, headOf, queryOf } from './flash_text';
import { LEAST, type MaskingSpec, shareOf } from './masking';

interface CombineSpec extends Pick<FlashSpec, 'lanes' | 'valueSize' | 'storage' | 'sharing'>, Spec {
  readonly sink: MaskingSpec['sink'];
}

/** Combines several results of a row, weighted by the sizes of their scores. */
export const FLASH_COMBINE: Shader<CombineSpec> = {
  name: 'flash_attention_combine__any',
  wgsl: ({ lanes, valueSize, storage, sharing, sink }) => {
    const score = sink === 'given' ? 'f32(sink[head])' : '0.0';
    return linearMain(`  let d = i % ${valueSize}u;
  let at = i / ${valueSize}u * u.splits;
  let row = i / ${valueSize}u % u.rows;
  let shared_head = i / ${valueSize}u / u.rows % u.kv_heads;
  let batch = i / ${valueSize}u / u.rows / u.kv_heads;
  let head = ${headOf('row', sharing)};
  var largest = ${sink === 'none' ? `f32(${LEAST})` : score};
  for (var part = 0u; part < u.splits; part++) { largest = max(largest, state[at + part].x); }
  var whole = ${sink === 'none' ? '0.0' : `exp(${score} - largest)`};
  var sum = ${laneType('f32', lanes)}(0.0);
  for (var part = 0u; part < u.splits; part++) {
    let found = state[at + part];
    let weight = exp(found.x - largest);
    whole += weight * found.y;
    sum += weight * sums[(at + part) * ${valueSize}u + d];
  }
  let share = ${shareOf('whole')};
  y[u.y_3 + batch * u.y_0 + head * u.y_1 + (${queryOf('row', sharing)}) * u.y_2 + d] =
    ${stored(storage, lanes, 'sum * share')};`);
  },
};
