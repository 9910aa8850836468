// A generation under way: tokens as they come, to be iterated over.
import type { FinishReason, GenerateInfo, GenerateOptions, OnLogits } from '../generate/generate_options';
import { invalid } from '../errors';

/** Tokens of one prompt. */
export type PromptTokens = readonly number[] | Int32Array | Uint32Array | BigInt64Array;

export interface GenerationOptions<Item = unknown> extends GenerateOptions {
  /** Ends the generation, which then rejects with the signal's reason: an AbortError, unless it was given another. */
  readonly signal?: AbortSignal;
  /** Called with what comes in each step: a token, or for a batch a token for each row, null for rows that are over. */
  readonly onTokens?: (tokens: Item) => void;
  readonly onLogits?: OnLogits;
}

/** Does the work; told of tokens as they come, -1 for rows that are over. */
export type StartGeneration = (
  onTokens: (tokens: readonly number[]) => void,
  signal: AbortSignal,
  onLogits?: OnLogits,
) => Promise<GenerateInfo>;

/** What comes of a generation. */
export interface GenerationForm {
  readonly rows: number;
  /** Whether there is an array of tokens for each row. */
  readonly batch: boolean;
  /** Whether sequences are searched, so that no token is sure before the end. */
  readonly searches: boolean;
}

/**
 * Iterate over it (`for await`), or await `result`. Each item is a token; of a batch an array of a token for each row,
 * null for rows that are over. Leaving the loop ends the generation. A search by beams has a `result` only.
 */
export class Generation<Item = number> implements AsyncIterableIterator<Item> {
  /** What it took; once it is over. */
  info: GenerateInfo | undefined;
  /** All new tokens: an array, or for a batch an array for each row. Rejects if it fails, or was ended. */
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
    const take = (tokens: readonly number[]) => {
      const item = this.took(tokens);
      this.items.push(item);
      this.wake();
      try {
        onTokens?.(item);
      } catch (error) {
        this.ending.abort(error);
      }
    };
    this.result = (async () => {
      try {
        this.info = await start(take, this.ending.signal, onLogits);
        return this.tokens as Item extends number ? number[] : number[][];
      } catch (error) {
        // A worker is told that it is ended, and not why.
        throw this.ending.signal.aborted ? this.ending.signal.reason : error;
      } finally {
        signal?.removeEventListener('abort', abort);
        this.over = true;
        this.wake();
      }
    })();
    // Whoever iterates is told by `next`.
    this.result.catch(() => undefined);
  }

  /** The new tokens so far, as in `result`. */
  get tokens(): number[] | number[][] {
    return this.form.batch ? this.rows.map((row) => [...row]) : [...this.rows[0]];
  }

  /** Why it ended, or each row of a batch; undefined as long as it goes on. */
  get finishReason(): FinishReason | readonly FinishReason[] | undefined {
    return this.form.batch ? this.info?.finished : this.info?.finished[0];
  }

  /** Ends it at once. The session, and what its caches hold, stay good. */
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

  /** The loop was left. */
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

export function noStream(): Error {
  return invalid('generate: a search by beams (numBeams) has no token before its end: await `result`');
}

/** The rows of a prompt, and whether it is a batch. */
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
