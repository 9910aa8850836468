// The shader that chooses tokens: one workgroup for each row of logits. The candidates are found in four passes of
// eight bits over scores as whole numbers, likeliest first. The choice is the candidate with the largest sum of score
// and noise.
import type { Shader } from '../../../contract/kernel';
import { FARTHEST, LOWEST, PARTS, UNITS } from '../../../generate/host_sampler';
import { NAN, NOTHING } from '../../../generate/no_token';
import { NOISE_WGSL } from '../../../generate/noise';

export interface SamplingSpec {
  readonly [key: string]: unknown;
  readonly sample: boolean;
  readonly topK: boolean;
  readonly topP: boolean;
  /** True if tokens are marked: bit 0 for those that occurred, bit 1 for those that are barred at first. */
  readonly marks: boolean;
  /** Threads of a row. */
  readonly threads: number;
}

/** In `values` and `places`, with an element for each thread. */
export const LARGEST = `
/** The first of the largest of all threads' values. */
fn largest(lane: u32, value: f32, place: u32) {
  values[lane] = value;
  places[lane] = place;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
    if (lane < half) {
      let other = lane + half;
      if (values[other] > values[lane] || (values[other] == values[lane] && places[other] < places[lane])) {
        values[lane] = values[other];
        places[lane] = places[other];
      }
    }
    workgroupBarrier();
  }
}`;

/** Tests bits: compilers may assume that no number is NaN. */
export const IS_NAN = 'fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }';

export const SAMPLING_SHADER: Shader<SamplingSpec> = {
  name: 'choose_token',
  wgsl: (spec) => `
const THREADS = ${spec.threads}u;
${spec.sample ? NOISE_WGSL : ''}
var<workgroup> values: array<f32, THREADS>;
var<workgroup> places: array<u32, THREADS>;
var<workgroup> broken: atomic<u32>;
${spec.topK || spec.topP ? SELECTION(spec) : ''}
fn score(row: u32, i: u32) -> f32 {
  var x = f32(logits[states[row * 2u + 1u] + i]);
${
  spec.marks
    ? `  let mark = marks[row * u.vocabulary + i];
  if ((mark & 1u) != 0u) { x = select(x * u.penalty, x / u.penalty, x > 0.0); }
  if ((mark & 2u) != 0u && states[row * 2u] < u.barred_steps) { return ${LOWEST}; }`
    : ''
}
  return x${spec.sample ? ' * u.inverse_temperature' : ''};
}
${LARGEST}
${IS_NAN}
/** How far a score is below the largest; none beyond ${FARTHEST}. */
fn key_of(score: f32, most: f32) -> u32 { return u32((most - score) * ${UNITS}.0); }
fn counts(score: f32, most: f32) -> bool { return most - score < ${FARTHEST}.0; }

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group.x;
  var value = ${LOWEST};
  var place = 0xffffffffu;
  for (var i = lane; i < u.vocabulary; i += THREADS) {
    let x = score(row, i);
    if (is_nan(x)) { atomicStore(&broken, 1u); }
    if (x > value) { value = x; place = i; }
  }
  largest(lane, value, place);
${spec.sample ? DRAWING(spec) : ''}
  if (lane == 0u) {
    let token = places[0];
    let chosen = token < u.vocabulary && atomicLoad(&broken) == 0u;
    ids[row] = select(select(${NAN}, ${NOTHING}, atomicLoad(&broken) == 0u), i32(token), chosen);
    states[row * 2u] += 1u;
${spec.marks ? '    if (chosen) { marks[row * u.vocabulary + token] |= 1u; }' : ''}
  }
}
`,
};

const DRAWING = ({ topK, topP }: SamplingSpec) => `
  let most = values[0];
  workgroupBarrier();
  var limit = 0xffffffffu;
${topK ? '  limit = last_key(row, lane, most, limit, u.top_k, 0.0);' : ''}
${
  topP
    ? `  let all = sum_of(row, lane, most, limit);
  let scale = ${PARTS}.0 / all;
  let wanted = u.top_p * f32(parts_of(row, lane, most, limit, scale));
  limit = last_key(row, lane, most, limit, max(u32(wanted), 1u), scale);`
    : ''
}
  let base = noise_base(u.seed_low, u.seed_high, row, states[row * 2u]);
  value = ${LOWEST};
  place = 0xffffffffu;
  for (var i = lane; i < u.vocabulary; i += THREADS) {
    let x = score(row, i);
    if (!counts(x, most) || key_of(x, most) > limit) { continue; }
    let noisy = x + gumbel(base, i);
    if (noisy > value) { value = noisy; place = i; }
  }
  largest(lane, value, place);
`;

const SELECTION = ({ topP }: SamplingSpec) => `
var<workgroup> bins: array<atomic<u32>, 256>;
var<workgroup> found: u32;
var<workgroup> left: u32;
${topP ? 'var<workgroup> total: atomic<u32>;' : ''}
fn chance(key: u32) -> f32 { return exp(-f32(key) / ${UNITS}.0); }
/** The smallest key such that those up to it are \`wanted\` tokens, or with a scale so many parts of probability. */
fn last_key(row: u32, lane: u32, most: f32, limit: u32, wanted: u32, scale: f32) -> u32 {
  var prefix = 0u;
  var remaining = wanted;
  for (var turn = 0u; turn < 4u; turn++) {
    let shift = 24u - 8u * turn;
    for (var bin = lane; bin < 256u; bin += THREADS) { atomicStore(&bins[bin], 0u); }
    workgroupBarrier();
    for (var i = lane; i < u.vocabulary; i += THREADS) {
      let x = score(row, i);
      if (!counts(x, most)) { continue; }
      let key = key_of(x, most);
      if (key > limit || (turn > 0u && (key >> (shift + 8u)) != prefix)) { continue; }
      atomicAdd(&bins[(key >> shift) & 255u], select(1u, u32(chance(key) * scale), scale > 0.0));
    }
    workgroupBarrier();
    if (lane == 0u) {
      var sum = 0u;
      var bin = 0u;
      for (; bin < 255u; bin++) {
        let here = atomicLoad(&bins[bin]);
        if (sum + here >= remaining) { break; }
        sum += here;
      }
      found = bin;
      left = remaining - min(sum, remaining);
    }
    prefix = (prefix << 8u) | workgroupUniformLoad(&found);
    remaining = workgroupUniformLoad(&left);
  }
  return prefix;
}
${
  topP
    ? `
fn sum_of(row: u32, lane: u32, most: f32, limit: u32) -> f32 {
  var sum = 0.0;
  for (var i = lane; i < u.vocabulary; i += THREADS) {
    let x = score(row, i);
    if (counts(x, most) && key_of(x, most) <= limit) { sum += chance(key_of(x, most)); }
  }
  values[lane] = sum;
  workgroupBarrier();
  for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
    if (lane < half) { values[lane] += values[lane + half]; }
    workgroupBarrier();
  }
  return workgroupUniformLoad(&values[0]);
}
fn parts_of(row: u32, lane: u32, most: f32, limit: u32, scale: f32) -> u32 {
  if (lane == 0u) { atomicStore(&total, 0u); }
  workgroupBarrier();
  var sum = 0u;
  for (var i = lane; i < u.vocabulary; i += THREADS) {
    let x = score(row, i);
    if (counts(x, most) && key_of(x, most) <= limit) { sum += u32(chance(key_of(x, most)) * scale); }
  }
  atomicAdd(&total, sum);
  workgroupBarrier();
  return atomicLoad(&total);
}
`
    : ''
}
`;
