// A beam search's decisions for one prompt, the same as transformers': which sequences continue, which are finished,
// and when none can become better. Tokens are scored in ranking.ts.
import type { FinishReason } from './generate_options';
import type { Settings } from './settings';
import { reasonOf } from './stops';

/** A possible next token, and its logarithmic probability, at least -Infinity. */
export interface Candidate {
  readonly token: number;
  readonly score: number;
}

/** A sequence that continues. */
interface Beam {
  readonly tokens: readonly number[];
  /** The sum of its tokens' scores; -Infinity for one that only fills its row. */
  readonly score: number;
}

/** A complete sequence; its score is divided by its length to the power of the length penalty. */
export interface Sequence extends Beam {
  readonly reason: FinishReason;
}

/** The parent and the token of a beam that continues. */
export interface Move {
  readonly parent: number;
  readonly token: number;
}

export class BeamSearch {
  beams: readonly Beam[] = [{ tokens: [], score: 0 }];
  /** The best finished sequences so far, best first. */
  finished: readonly Sequence[] = [];
  /** True if the finished sequences stay the best. */
  over = false;

  constructor(private readonly settings: Settings) {}

  /** The number of likeliest tokens to consider: enough that beams remain even if all ends are among them. */
  static candidates({ beams, eos }: Settings): number {
    return Math.max(2, 1 + eos.length) * beams.count;
  }

  /**
   * Takes the likeliest tokens after each beam; returns the parents of the beams that continue. Undefined: all tokens
   * are ends, which are not allowed yet.
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
    // A batch keeps its number of rows: superfluous rows continue without a chance.
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

  /** True if the best beam may still become better than the worst finished sequence. */
  private mayImprove(length: number): boolean {
    const { beams, finished, settings } = this;
    const { count, lengthPenalty, earlyStopping } = settings.beams;
    if (finished.length < count) return true;
    if (earlyStopping === true) return false;
    // If longer sequences score better, the best possible one has the maximal number of tokens.
    const last = earlyStopping === 'never' && lengthPenalty > 0 ? settings.maxNewTokens : length;
    return beams[0].score / last ** lengthPenalty > finished[count - 1].score;
  }
}
