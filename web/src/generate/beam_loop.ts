// The loop of a beam search: each prompt is run once, then its beams as rows of one batch, whose caches follow them.
import type { RuntimeError } from '../errors';
import { BeamSearch, type Candidate, type Sequence } from './beam_search';
import { NOTHING, noToken } from './no_token';
import type { Ranked } from './ranking';
import { partsOf } from './rows';
import type { RankingSteps, Runs, StepContext } from './steps';
import { invalid } from './outside';

export class BeamLoop {
  private readonly made: RankingSteps[] = [];
  private readonly searches: readonly BeamSearch[];
  /** The time when the prompts were read, by performance.now. */
  promptEnd = 0;

  constructor(
    private readonly context: StepContext,
    private readonly makeSteps: (context: StepContext) => RankingSteps,
  ) {
    this.searches = context.prompts.map(() => new BeamSearch(context.settings));
  }

  /** @returns the best sequences of each prompt, best first. */
  async run(prompts: readonly (readonly number[])[]): Promise<readonly Sequence[]> {
    const { caches, rows, settings } = this.context;
    const { count } = settings.beams;
    const parts = partsOf(prompts);
    const steps = this.steps(this.context);
    for (const part of parts.slice(0, -1)) await steps.absorb(part);
    let tokens = this.take(await steps.rank(parts[parts.length - 1], this.context.prompts), 1);
    this.promptEnd = performance.now();
    const beamSteps = this.steps({ ...this.context, rows: rows.repeated(count) });
    while (this.searches.some(({ over }) => !over)) {
      caches.select(tokens.map(({ from }) => from));
      const ranked = await beamSteps.rank(
        tokens.map(({ token }) => [token]),
        this.written(),
      );
      tokens = this.take(ranked, count);
    }
    return this.searches.flatMap(({ finished }) => this.best(finished));
  }

  get runs(): Runs['runs'] {
    return this.made.flatMap(({ runs }) => runs);
  }

  release(): void {
    for (const steps of this.made) steps.release();
  }

  private steps(context: StepContext): RankingSteps {
    const searchOf = (row: number) => this.searches[Math.floor((row * this.searches.length) / context.rows.count)];
    const steps = this.makeSteps({ ...context, isOver: (row) => searchOf(row).over });
    this.made.push(steps);
    return steps;
  }

  /** Takes the likeliest tokens after each row, the same number for each prompt; returns the next rows. */
  private take(ranked: readonly Ranked[], rows: number): { readonly from: number; readonly token: number }[] {
    const { signal, settings } = this.context;
    signal?.throwIfAborted();
    return this.searches.flatMap((search, prompt) => {
      const first = prompt * rows;
      // Rows of an ended search stay, so that the batch keeps its size.
      if (search.over) return Array.from({ length: rows }, (_, i) => ({ from: first + i, token: 0 }));
      const candidates = search.beams.map(({ score }, i) =>
        score === -Infinity ? [] : this.candidates(ranked[first + i], search, prompt),
      );
      const moves = search.take(candidates);
      if (!moves) throw this.nothing(NOTHING, search, prompt);
      if (search.over) return Array.from({ length: settings.beams.count }, () => ({ from: first, token: 0 }));
      return moves.map(({ parent, token }) => ({ from: first + parent, token }));
    });
  }

  private candidates(ranked: Ranked, search: BeamSearch, prompt: number): readonly Candidate[] {
    if (typeof ranked !== 'number') return ranked;
    throw this.nothing(ranked, search, prompt);
  }

  private nothing(fault: number, search: BeamSearch, prompt: number): RuntimeError {
    const { settings } = this.context;
    return noToken(fault, search.beams[0].tokens, this.searches.length > 1 ? prompt : undefined, settings);
  }

  /** All tokens of each row. */
  private written(): number[][] {
    return this.searches.flatMap(({ beams }, i) => beams.map(({ tokens }) => [...this.context.prompts[i], ...tokens]));
  }

  private best(finished: readonly Sequence[]): readonly Sequence[] {
    const { sequences } = this.context.settings;
    if (finished.length >= sequences) return finished.slice(0, sequences);
    throw invalid(`${sequences} sequences are wanted (numReturnSequences), and there are only ${finished.length}`);
  }
}
