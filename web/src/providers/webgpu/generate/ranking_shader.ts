// The shader that finds the likeliest tokens: one workgroup for each row of logits. Each thread knows the best of its
// share of tokens. The best of all threads' tokens is taken, and its thread looks for its next best.
import type { Shader } from '../../../contract/kernel';
import { LOWEST } from '../../../generate/host_sampler';
import { NAN, NOTHING } from '../../../generate/no_token';
import { IS_NAN, LARGEST } from './sampling_shader';

export interface RankingSpec {
  readonly [key: string]: unknown;
  /** True if tokens that occurred are penalized. */
  readonly seen: boolean;
  /** Threads of a row. */
  readonly threads: number;
}

/** For each row: its error, or 0; the number of tokens found; and each token with its score. */
export const RANKING_SHADER: Shader<RankingSpec> = {
  name: 'likeliest_tokens',
  wgsl: ({ seen, threads }) => `
const THREADS = ${threads}u;
const NO_PLACE = 0xffffffffu;
var<workgroup> values: array<f32, THREADS>;
var<workgroup> places: array<u32, THREADS>;
var<workgroup> broken: atomic<u32>;
${LARGEST}
${IS_NAN}
fn logit(row: u32, i: u32) -> f32 { return f32(logits[states[row * 2u + 1u] + i]); }

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x;
  var value = ${LOWEST};
  for (var i = lane; i < u.vocabulary; i += THREADS) {
    let x = logit(row, i);
    if (is_nan(x)) { atomicStore(&broken, 1u); }
    value = max(value, x);
  }
  largest(lane, value, lane);
  let most = workgroupUniformLoad(&values[0]);
  var sum = 0.0;
  for (var i = lane; i < u.vocabulary; i += THREADS) { sum += exp(logit(row, i) - most); }
  values[lane] = sum;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
    if (lane < half) { values[lane] += values[lane + half]; }
    workgroupBarrier();
  }
  let log_sum = log(workgroupUniformLoad(&values[0]));

  let start = row * (2u + 2u * u.wanted);
  var place = NO_PLACE;
  var looks = true;
  var below = 1.0;
  var behind = 0u;
  var count = 0u;
  for (var k = 0u; k < u.wanted; k++) {
    if (looks) {
      value = ${LOWEST};
      place = NO_PLACE;
      for (var i = lane; i < u.vocabulary; i += THREADS) {
        var score = logit(row, i) - most - log_sum;
${seen ? '        if (((seen[row * u.words + i / 32u] >> (i % 32u)) & 1u) != 0u) { score *= u.penalty; }' : ''}
        if (score > value && (score < below || (score == below && i > behind))) { value = score; place = i; }
      }
    }
    largest(lane, value, place);
    below = workgroupUniformLoad(&values[0]);
    behind = workgroupUniformLoad(&places[0]);
    looks = place == behind && place != NO_PLACE;
    if (lane == 0u && behind != NO_PLACE) {
      found[start + 2u + 2u * k] = behind;
      found[start + 3u + 2u * k] = bitcast<u32>(below);
      count += 1u;
    }
  }
  if (lane == 0u) {
    // As bits: compilers may assume that no number is infinite.
    let infinite = (bitcast<u32>(most) & 0x7f800000u) == 0x7f800000u;
    let fault = select(select(0, ${NOTHING}, infinite || count == 0u), ${NAN}, atomicLoad(&broken) != 0u);
    found[start] = bitcast<u32>(i32(fault));
    found[start + 1u] = count;
  }
}
`,
};
