// A generation under way: tokens as they come, to be iterated over.
import type { FinishReason, GenerateInfo, GenerateOptions, OnLogits } from '../generate/generate_options';
import { describe, invalid } from '../errors';

/** Tokens of one prompt. */
export type PromptTokens = readonly number[] | Int32Array | Uint32Array | BigInt64Array;

export interface GenerationOptions<Item = unknown> extends GenerateOptions {
  /** Ends the generation, which then rejects with the signal's reason: by default an AbortError. */
  readonly signal?: AbortSignal;
  /**
   * Called in each step with the new tokens: one token, or for a batch a token for each row, null for rows that have
   * ended. If it throws, the generation ends with the error.
   */
  readonly onTokens?: (tokens: Item) => void;
  readonly onLogits?: OnLogits;
}

/** Runs the generation; `onTokens` receives tokens as they arrive, -1 for rows that have ended. */
export type StartGeneration = (
  onTokens: (tokens: readonly number[]) => void,
  signal: AbortSignal,
  onLogits?: OnLogits,
) => Promise<GenerateInfo>;

/** The form of a generation's result. */
export interface GenerationForm {
  readonly rows: number;
  /** True if the result is an array of tokens for each row. */
  readonly batch: boolean;
  /** True for a search, in which no token is final before the end. */
  readonly searches: boolean;
}

/**
 * Iterate over it (`for await`), or await `result`. Each item is a token; for a batch an array with a token for each
 * row, null for rows that have ended. Leaving the loop ends the generation. A beam search only has a `result`.
 */
export class Generation<Item = number> implements AsyncIterableIterator<Item> {
  /** Its times and counters, once it has ended. */
  info: GenerateInfo | undefined;
  /** All new tokens: an array, or for a batch an array for each row. Rejects if the generation fails or is ended. */
  readonly result: Promise<Item extends number ? number[] : number[][]>;
  private readonly rows: number[][];
  private readonly ending = new AbortController();
  private readonly items: Item[] = [];
  private readonly waiting: (() => void)[] = [];
  private over = false;

  /** @internal Made by `InferenceSession.generate`. */
  constructor(
    start: StartGeneration,
    private readonly form: GenerationForm,
    { signal, onTokens, onLogits }: Pick<GenerationOptions<Item>, 'signal' | 'onTokens' | 'onLogits'>,
  ) {
    this.rows = Array.from({ length: form.rows }, () => []);
    const abort = () => this.ending.abort(signal!.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    let failed = false;
    const take = (tokens: readonly number[]) => {
      const item = this.took(tokens);
      this.items.push(item);
      this.wake();
      try {
        if (!failed) onTokens?.(item);
      } catch (error) {
        failed = true;
        this.ending.abort(error);
      }
    };
    this.result = (async () => {
      try {
        this.info = await start(take, this.ending.signal, onLogits);
        if (failed) this.ending.signal.throwIfAborted();
        return this.tokens as Item extends number ? number[] : number[][];
      } catch (error) {
        // A worker receives the end of a generation, but not its reason.
        throw this.ending.signal.aborted ? this.ending.signal.reason : error;
      } finally {
        signal?.removeEventListener('abort', abort);
        this.over = true;
        this.wake();
      }
    })();
    // A caller that iterates receives the error from `next`.
    this.result.catch(() => undefined);
  }

  /** The new tokens so far, as in `result`. */
  get tokens(): number[] | number[][] {
    return this.form.batch ? this.rows.map((row) => [...row]) : [...this.rows[0]];
  }

  /** The reason for its end, or for the end of each row of a batch; undefined while it continues. */
  get finishReason(): FinishReason | readonly FinishReason[] | undefined {
    return this.form.batch ? this.info?.finished : this.info?.finished[0];
  }

  /** Ends it at once. The session and its caches remain valid. */
  cancel(): void {
    this.ending.abort();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Item, undefined>> {
    if (this.form.searches) throw noStream();
    while (this.items.length === 0 && !this.over) await new Promise<void>((resolve) => this.waiting.push(resolve));
    if (this.items.length > 0) return { done: false, value: this.items.shift()! };
    await this.result;
    return { done: true, value: undefined };
  }

  /** The caller left the loop. */
  async return(): Promise<IteratorResult<Item, undefined>> {
    this.cancel();
    await this.result.catch(() => undefined);
    return { done: true, value: undefined };
  }

  private took(tokens: readonly number[]): Item {
    const items = tokens.map((token) => (token < 0 ? null : token));
    items.forEach((token, row) => {
      if (token !== null) this.rows[row].push(token);
    });
    return (this.form.batch ? items : items[0]) as Item;
  }

  private wake(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

/** Refuses a generation that a function for logits begins: the one before waits for the function. */
export class LogitsGuard {
  private within = false;

  check(): void {
    if (!this.within) return;
    const advice = 'use another session of the model';
    throw invalid(`generate: onLogits cannot generate with its own session, which waits for it: ${advice}`);
  }

  around(onLogits: OnLogits | undefined): OnLogits | undefined {
    if (!onLogits) return undefined;
    if (typeof onLogits !== 'function') throw invalid(`generate: onLogits is a function, not ${describe(onLogits)}`);
    return (...given) => {
      this.within = true;
      try {
        return onLogits(...given);
      } finally {
        this.within = false;
      }
    };
  }
}

export function noStream(): Error {
  return invalid('generate: a search by beams (numBeams) has no token before its end: await `result`');
}

/** The rows of a prompt, and true if it is a batch. */
export function rowsOf(prompt: PromptTokens | readonly PromptTokens[]): { rows: number[][]; batch: boolean } {
  const list = typeof prompt === 'object' && prompt !== null && 'length' in prompt ? Array.from<unknown>(prompt) : [];
  if (list.length === 0) throw invalid('generate: a prompt is an array of tokens, or of such arrays');
  const batch = typeof list[0] === 'object';
  const rows = batch ? list.map((row) => Array.from(row as ArrayLike<unknown>)) : [list];
  return { batch, rows: rows.map((row) => row.map(token)) };
}

function token(value: unknown): number {
  const number = typeof value === 'bigint' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < 0 || number > 0x7fffffff)
    throw invalid(`generate: tokens are whole numbers from 0, not ${String(value)}`);
  return number;
}
