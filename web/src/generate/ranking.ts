// The likeliest next tokens of each row, for searches, from logits on the CPU. Devices do the same.
import type { Candidate } from './beam_search';
import { NAN, NOTHING } from './no_token';

/** The options of a ranking. */
export interface RankingOptions {
  /** Number of likeliest tokens. */
  readonly count: number;
  /** Factor of the logarithmic probabilities of tokens that occurred. */
  readonly penalty: number;
}

/** The likeliest, best first, among equals the first; or the reason why the logits are unusable. */
export type Ranked = readonly Candidate[] | typeof NAN | typeof NOTHING;

/** A bit for each token: set if it is one of these. */
export function marked(tokens: readonly number[], vocabulary: number): Uint32Array<ArrayBuffer> {
  const marks = new Uint32Array(Math.ceil(vocabulary / 32));
  for (const token of tokens) marks[token >>> 5] |= 1 << (token & 31);
  return marks;
}

/** @param written the tokens so far, including the prompt's. */
export function rank(logits: Float32Array, { count, penalty }: RankingOptions, written: readonly number[]): Ranked {
  const most = logits.reduce((a, b) => Math.max(a, b));
  if (Number.isNaN(most)) return NAN;
  if (!Number.isFinite(most)) return NOTHING;
  const log = Math.log(logits.reduce((sum, x) => sum + Math.exp(x - most), 0));
  const scores = logits.map((x) => x - most - log);
  for (const token of new Set(written)) scores[token] *= penalty;
  const best: Candidate[] = [];
  scores.forEach((score, token) => {
    if (score === -Infinity || (best.length === count && score <= best[count - 1].score)) return;
    let place = best.length;
    while (place > 0 && best[place - 1].score < score) place--;
    best.splice(place, 0, { token, score });
    if (best.length > count) best.pop();
  });
  return best;
}
