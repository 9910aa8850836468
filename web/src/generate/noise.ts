// The random numbers of sampling: a number for each token of each step, derived from the seed alone. JavaScript and
// WGSL (providers/webgpu/generate) compute the same, so that a seed yields the same tokens on either provider.

/** A bijection of 32-bit numbers whose results look random. */
function mix(x: number): number {
  let h = x >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x21f0aaad);
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97);
  return (h ^ (h >>> 15)) >>> 0;
}

/** The start of the noise of one row and step. */
export function noiseBase([low, high]: readonly [number, number], row: number, step: number): number {
  return mix(mix(mix(mix(low ^ GOLDEN) ^ high) ^ row) ^ step);
}

const GOLDEN = 0x9e3779b9;

/**
 * A draw of the standard Gumbel distribution: among tokens with scores s, the probability that one has the largest s +
 * gumbel is exp(s), divided by the sum of all.
 */
export function gumbel(base: number, token: number): number {
  const h = mix(mix((base + Math.imul(token, GOLDEN)) | 0) ^ base);
  const u = Math.min((h + 0.5) * 2 ** -32, MOST);
  return -Math.log(-Math.log1p(-u));
}

/** The largest float32 below 1. */
const MOST = 0.99999994;

/** The same in WGSL. Near 0 its log is too inexact: a series replaces it there. */
export const NOISE_WGSL = `
fn mix32(x: u32) -> u32 {
  var h = (x ^ (x >> 16u)) * 0x21f0aaadu;
  h = (h ^ (h >> 15u)) * 0x735a2d97u;
  return h ^ (h >> 15u);
}
fn noise_base(low: u32, high: u32, row: u32, step: u32) -> u32 {
  return mix32(mix32(mix32(mix32(low ^ ${GOLDEN}u) ^ high) ^ row) ^ step);
}
fn gumbel(base: u32, token: u32) -> f32 {
  let h = mix32(mix32(base + token * ${GOLDEN}u) ^ base);
  let x = min((f32(h) + 0.5) * ${2 ** -32}, ${MOST});
  let near = x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * (1.0 / 4.0 + x * (1.0 / 5.0
    + x * (1.0 / 6.0 + x * (1.0 / 7.0 + x * (1.0 / 8.0 + x / 9.0))))))));
  return -log(select(-log(1.0 - x), near, x < 0.125));
}
`;
