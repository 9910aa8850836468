// The loop that chooses tokens one by one.
import type { FinishReason } from './generate_options';
import type { Settings } from './settings';
import { noToken } from './no_token';
import { partsOf } from './rows';
import type { Steps } from './steps';
import type { Stops } from './stops';

/** Called for each step with a token for each row; -1 for rows that have ended. */
export type OnTokens = (tokens: readonly number[]) => void;

/** Submits steps, some of them ahead, and reports tokens as they arrive. */
export class Loop {
  private readonly underWay: Promise<number[]>[] = [];
  private readonly chosen: number[] = [];
  private failed = false;

  constructor(
    private readonly steps: Steps,
    private readonly settings: Settings,
    private readonly stops: Stops,
    private readonly tell: OnTokens,
  ) {}

  async run(prompts: readonly (readonly number[])[], signal: AbortSignal | undefined): Promise<FinishReason[]> {
    let submitted = 0;
    const parts = partsOf(prompts);
    const submit = async (tokens?: readonly (readonly number[])[]) => {
      signal?.throwIfAborted();
      const { chosen } = await this.steps.submit(tokens);
      // A later waiter receives the failure; until then there may be none.
      chosen.catch(() => undefined);
      this.underWay.push(chosen);
      submitted++;
    };
    try {
      for (let i = 0; i < parts.length - 1; i++) {
        signal?.throwIfAborted();
        await this.steps.absorb(parts[i]);
      }
      await submit(parts[parts.length - 1]);
      for (;;) {
        while (submitted < this.settings.maxNewTokens && this.underWay.length <= this.steps.ahead) await submit();
        const tokens = await this.underWay[0];
        this.underWay.shift();
        signal?.throwIfAborted();
        this.check(tokens);
        this.chosen.push(tokens[0]);
        this.tell(this.stops.take(tokens));
        if (this.stops.over) return this.stops.reasons();
      }
    } catch (error) {
      this.failed = !signal?.aborted;
      throw error;
    }
  }

  /** Throws if the logits of a row that continues yielded no token. */
  private check(tokens: readonly number[]): void {
    const row = tokens.findIndex((token, i) => token < 0 && !this.stops.isOver(i));
    if (row < 0) return;
    throw noToken(tokens[row], this.stops.tokensOf(row), tokens.length > 1 ? row : undefined, this.settings);
  }

  /** Waits for submitted steps; returns all tokens chosen for the first row, or undefined after a failure. */
  async settle(): Promise<number[] | undefined> {
    const rest = await Promise.allSettled(this.underWay.splice(0));
    for (const one of rest) {
      if (one.status === 'rejected') return undefined;
      this.chosen.push(one.value[0]);
    }
    return this.failed ? undefined : this.chosen;
  }
}
