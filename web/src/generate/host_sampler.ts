// Chooses tokens in JavaScript, from logits on the CPU. Devices do the same, step by step, with the same roundings
// where a choice depends on them.
import type { Sampling } from './settings';
import { NAN, NOTHING } from './no_token';
import { gumbel, noiseBase } from './noise';

/**
 * Scores are compared as whole numbers, by their distance from the largest: in units of 2^-26, and up to 64, beyond
 * which no token has a chance.
 */
export const UNITS = 2 ** 26;
export const FARTHEST = 64;
/** Probabilities are added as whole numbers, in units of 2^-30. */
export const PARTS = 2 ** 30;

/** Lower than any score. */
export const LOWEST = -3.4028234e38;

export class HostSampler {
  private readonly seen: Uint8Array[];
  private step = 0;

  /** @param context the tokens of each row so far, for the repetition penalty. */
  constructor(
    private readonly sampling: Sampling,
    private readonly vocabulary: number,
    context: readonly (readonly number[])[],
    private readonly barred: { readonly tokens: readonly number[]; readonly steps: number },
  ) {
    this.seen = context.map((tokens) => {
      const seen = new Uint8Array(vocabulary);
      for (const token of tokens) seen[token] = 1;
      return seen;
    });
  }

  /** The next token of each row, from its logits, which are overwritten; NAN or NOTHING if there is none. */
  choose(logits: readonly Float32Array[]): number[] {
    const tokens = logits.map((row, i) => {
      this.adjust(row, this.seen[i]);
      const best = likeliest(row);
      if (row.some(Number.isNaN)) return NAN;
      if (!(row[best] > LOWEST)) return NOTHING;
      return this.sampling.sample ? this.draw(row, i, row[best]) : best;
    });
    tokens.forEach((token, i) => {
      if (token >= 0) this.seen[i][token] = 1;
    });
    this.step++;
    return tokens;
  }

  private adjust(row: Float32Array, seen: Uint8Array): void {
    const { repetitionPenalty } = this.sampling;
    if (repetitionPenalty !== 1) {
      for (let i = 0; i < this.vocabulary; i++)
        if (seen[i]) row[i] = row[i] > 0 ? row[i] / repetitionPenalty : row[i] * repetitionPenalty;
    }
    if (this.step < this.barred.steps) for (const token of this.barred.tokens) row[token] = -Infinity;
  }

  private draw(row: Float32Array, index: number, most: number): number {
    const { temperature, topK, topP, seed } = this.sampling;
    const inverse = Math.fround(1 / temperature);
    for (let i = 0; i < this.vocabulary; i++) row[i] *= inverse;
    const largest = Math.fround(most * inverse);
    const keys = new Uint32Array(this.vocabulary);
    const kept: number[] = [];
    for (let i = 0; i < this.vocabulary; i++) {
      const below = Math.fround(largest - row[i]);
      if (!(below < FARTHEST)) continue;
      keys[i] = below * UNITS;
      kept.push(i);
    }
    const among = this.within(kept, keys, topK, topP);
    const base = noiseBase([seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0], index, this.step);
    let [best, token] = [-Infinity, NOTHING];
    for (const i of among) {
      const score = row[i] + gumbel(base, i);
      if (score > best) [best, token] = [score, i];
    }
    return token;
  }

  /** The likeliest of `kept`, in the order of their numbers, including those as likely as the last one. */
  private within(kept: number[], keys: Uint32Array, topK: number, topP: number): number[] {
    let among = kept;
    if (topK > 0 && topK < among.length) {
      const last = Uint32Array.from(among, (i) => keys[i]).sort()[topK - 1];
      among = among.filter((i) => keys[i] <= last);
    }
    if (topP >= 1) return among;
    const chances = among.map((i) => Math.exp(-keys[i] / UNITS));
    const all = chances.reduce((sum, chance) => sum + chance, 0);
    const parts = chances.map((chance) => Math.floor((chance / all) * PARTS));
    const wanted = topP * parts.reduce((sum, part) => sum + part, 0);
    const order = among.map((_, i) => i).sort((a, b) => keys[among[a]] - keys[among[b]]);
    let sum = 0;
    const last = order.find((i) => (sum += parts[i]) >= wanted) ?? order[order.length - 1];
    return among.filter((i) => keys[i] <= keys[among[last]]);
  }
}

/** The first of the largest. */
export function likeliest(row: Float32Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}
