// A beam search's decisions for one prompt, as transformers takes them: which sequences go on, which are finished, and
// when none can become better. What scores tokens is elsewhere (ranking.ts).
import type { FinishReason } from './generate_options';
import type { Settings } from './settings';
import { reasonOf } from './stops';

/** A token that may come next, and its logarithmic probability, -Infinity at least. */
export interface Candidate {
  readonly token: number;
  readonly score: number;
}

/** A sequence that goes on. */
interface Beam {
  readonly tokens: readonly number[];
  /** The sum of its tokens' scores; -Infinity for one that only fills its row. */
  readonly score: number;
}

/** A sequence that is complete; its score is divided by its length to the power of the length penalty. */
export interface Sequence extends Beam {
  readonly reason: FinishReason;
}

/** Which beam one that goes on comes of, and by which token. */
export interface Move {
  readonly parent: number;
  readonly token: number;
}

export class BeamSearch {
  beams: readonly Beam[] = [{ tokens: [], score: 0 }];
  /** The best so far, best first. */
  finished: readonly Sequence[] = [];
  /** Whether what is finished stays the best. */
  over = false;

  constructor(private readonly settings: Settings) {}

  /** How many of the likeliest tokens decide: so many that beams are left when each end is among them. */
  static candidates({ beams, eos }: Settings): number {
    return Math.max(2, 1 + eos.length) * beams.count;
  }

  /**
   * Takes the likeliest tokens behind each beam; gives where the beams that go on come from. Undefined: all of them are
   * ends, which may not come yet.
   */
  take(candidates: readonly (readonly Candidate[])[]): readonly Move[] | undefined {
    const { beams, settings } = this;
    const { count } = settings.beams;
    const length = beams[0].tokens.length + 1;
    const barred = length > settings.minNewTokens ? [] : settings.eos;
    const likeliest = candidates
      .flatMap((found, parent) => found.map((one) => ({ ...one, parent, score: beams[parent].score + one.score })))
      .filter(({ token, score }) => score > -Infinity && !barred.includes(token))
      .sort((a, b) => b.score - a.score)
      .slice(0, BeamSearch.candidates(settings))
      .map((one) => {
        const tokens = [...beams[one.parent].tokens, one.token];
        return { ...one, tokens, reason: reasonOf(tokens, settings) };
      });
    if (likeliest.length === 0 && barred.length > 0) return undefined;
    this.finish(likeliest.slice(0, count), length);
    const on = likeliest.filter(({ reason }) => !reason).slice(0, count);
    // Rows of a batch are as many as ever: those that are left over go on without a chance.
    const [{ parent, token, tokens }] = [...likeliest, { parent: 0, token: 0, tokens: [...beams[0].tokens, 0] }];
    const moves = [...on, ...Array(count - on.length).fill({ parent, token, tokens, score: -Infinity })];
    this.beams = moves;
    this.over = !this.mayImprove(length) || on.length === 0;
    return moves;
  }

  private finish(best: readonly (Move & Beam & { readonly reason: FinishReason | undefined })[], length: number): void {
    const { count, lengthPenalty } = this.settings.beams;
    const complete = best.flatMap(({ tokens, score, reason }) =>
      reason ? [{ tokens, score: score / length ** lengthPenalty, reason }] : [],
    );
    this.finished = [...this.finished, ...complete].sort((a, b) => b.score - a.score).slice(0, count);
  }

  /** Whether the best beam may still become better than the worst of what is finished. */
  private mayImprove(length: number): boolean {
    const { beams, finished, settings } = this;
    const { count, lengthPenalty, earlyStopping } = settings.beams;
    if (finished.length < count) return true;
    if (earlyStopping === true) return false;
    // Where longer is better, the best that can come has all the tokens that may.
    const last = earlyStopping === 'never' && lengthPenalty > 0 ? settings.maxNewTokens : length;
    return beams[0].score / last ** lengthPenalty > finished[count - 1].score;
  }
}
