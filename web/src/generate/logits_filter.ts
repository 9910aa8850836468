// Changes of logits before tokens are chosen: by a function of the caller's, by a mask, by the grammar of JSON.
import type { OnLogits } from './generate_options';
import { JsonMasks } from './json_grammar';
import type { Settings } from './settings';
import { invalid } from './outside';

export class LogitsFilter {
  /** Rejects when the generation is aborted: the caller's function may take for ever. */
  private readonly aborted: Promise<never>;

  private constructor(
    private readonly mask: ArrayLike<number> | undefined,
    private readonly json: JsonMasks | undefined,
    private readonly onLogits: OnLogits | undefined,
    signal: AbortSignal | undefined,
  ) {
    this.aborted = new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    this.aborted.catch(() => undefined);
  }

  /** Undefined where nothing changes logits. */
  static of(
    { mask, jsonVocabulary, eos }: Settings,
    onLogits: OnLogits | undefined,
    signal: AbortSignal | undefined,
  ): LogitsFilter | undefined {
    if (!mask && !jsonVocabulary && !onLogits) return undefined;
    return new LogitsFilter(mask, jsonVocabulary && new JsonMasks(jsonVocabulary, eos), onLogits, signal);
  }

  /** @param tokens the new tokens of the row so far. */
  async apply(logits: Float32Array, tokens: readonly number[], row: number): Promise<Float32Array> {
    const { mask, json, onLogits } = this;
    const { length } = logits;
    if (mask && mask.length !== length)
      throw invalid(`mask has ${mask.length} numbers, and the model logits for ${length} tokens`);
    const given = (await Promise.race([onLogits?.(logits, tokens, row), this.aborted])) ?? logits;
    if (given.length !== length) throw invalid(`onLogits returned ${given.length} logits, and there are ${length}`);
    const allowed = [mask, json?.behind(tokens)].filter((one) => one !== undefined);
    return Float32Array.from(given, (logit, token) => (allowed.every((one) => one[token]) ? logit : -Infinity));
  }
}
