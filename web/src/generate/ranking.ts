// The likeliest next tokens of each row, for searches, of logits on the CPU. Devices do the same.
import type { Candidate } from './beam_search';
import { NAN, NOTHING } from './no_token';

/** What is wanted of each row of logits. */
export interface RankingOptions {
  /** So many of the likeliest. */
  readonly count: number;
  /** Logarithmic probabilities of tokens that there were are multiplied by it. */
  readonly penalty: number;
}

/** The likeliest, best first, of equals the first; or what is wrong with the logits. */
export type Ranked = readonly Candidate[] | typeof NAN | typeof NOTHING;

/** A bit for each token: whether it is one of these. */
export function marked(tokens: readonly number[], vocabulary: number): Uint32Array<ArrayBuffer> {
  const marks = new Uint32Array(Math.ceil(vocabulary / 32));
  for (const token of tokens) marks[token >>> 5] |= 1 << (token & 31);
  return marks;
}

/** @param written the tokens so far, those of the prompt, too. */
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
