// The options and the result of a generation.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import type { Counters } from '../device/counters';

/** The purpose of an input that is not a cache. */
export type Role = 'ids' | 'mask' | 'positions' | 'cachePositions' | 'lengths' | 'total' | 'logitsToKeep' | 'useCache';

/** A model's names, if they differ from these; names of caches have %d for the layer. */
export interface DecoderNames extends Partial<Record<Role, string>> {
  readonly logits?: string;
  readonly pastKey?: string;
  readonly pastValue?: string;
  readonly presentKey?: string;
  readonly presentValue?: string;
}

export interface GenerateOptions {
  /** 256 by default. */
  readonly maxNewTokens?: number;
  /** Number of tokens before any of `eos` is allowed. */
  readonly minNewTokens?: number;
  /** The most tokens of prompt and generation together, if the model has a limit. */
  readonly contextLength?: number;
  /** A token that ends a row, or several. */
  readonly eos?: number | readonly number[];
  /** Sequences of tokens that end a row. */
  readonly stop?: readonly (readonly number[])[];
  /** Draw tokens; by default the likeliest one is chosen. */
  readonly sample?: boolean;
  readonly temperature?: number;
  /** Draw among this number of the likeliest; 0: all. */
  readonly topK?: number;
  /** Draw among the likeliest that together have this probability. */
  readonly topP?: number;
  /** Divides the scores of tokens that occurred, or multiplies negative ones; 1: no penalty. */
  readonly repetitionPenalty?: number;
  /** The number of sequences that a search follows at a time; 1, the default: no search. */
  readonly numBeams?: number;
  /** Scores of sequences are divided by their length to this power: above 0 longer ones are preferred; 1 by default. */
  readonly lengthPenalty?: number;
  /** End as soon as the number of finished sequences is that of beams; "never": only when none can become better. */
  readonly earlyStopping?: boolean | 'never';
  /** Number of sequences for each prompt: the best of a search, or draws. */
  readonly numReturnSequences?: number;
  /** A whole number from 0: the same seed, the same draws. By default new in each generation. */
  readonly seed?: number;
  /** The model's names that differ from those of transformers. */
  readonly names?: DecoderNames;
  /** Continue from the caches of the last generation, if prompts begin alike. */
  readonly reuse?: boolean;
  /** A number for each token: tokens with 0 are never chosen. */
  readonly mask?: ArrayLike<number>;
  /**
   * The text of each token, by number, "" of tokens that are no text: only tokens are chosen with which the text is the
   * beginning of a JSON value, and those of `eos` where the value is whole.
   */
  readonly jsonVocabulary?: readonly string[];
}

/**
 * Changes the logits of a row before its next token is chosen: in place, or by those that it returns.
 *
 * It must not wait for another generation of the same session, which waits for it.
 *
 * @param logits one for each token of the vocabulary.
 * @param tokens the new tokens of the row so far.
 */
export type OnLogits = (
  logits: Float32Array,
  tokens: readonly number[],
  row: number,
  // biome-ignore lint/suspicious/noConfusingVoidType: functions, async ones too, may return nothing
) => ArrayLike<number> | void | Promise<ArrayLike<number> | void>;

export type FinishReason = 'eos' | 'stop' | 'length';

export interface GenerateInfo {
  /** The reason for each row's end. */
  readonly finished: readonly FinishReason[];
  /** Number of new tokens in each row. */
  readonly counts: readonly number[];
  /** Tokens of the prompt that were in the caches already. */
  readonly reused: number;
  /** For each row, after a search: the sum of logarithmic probabilities, divided according to `lengthPenalty`. */
  readonly scores?: readonly number[];
  /** From the call to the first token, and from there to the last. */
  readonly prompt_ms: number;
  readonly decode_ms: number;
  /** Runs of the model. */
  readonly steps: number;
  readonly seed: number;
  /** The provider that chose the tokens. */
  readonly sampled_on: string;
  /** All steps together, and the last one. */
  readonly counters: Counters;
  readonly last_step: Counters;
}

/** Of a batch: a dispatch has no more workgroups, of which each row gets one. */
const MOST_ROWS = 65535;

/** Throws if this number of prompts needs more rows than a batch can have. */
export function checkRows(prompts: number, { numBeams = 1, numReturnSequences = 1 }: GenerateOptions): void {
  const rows = prompts * Math.max(numBeams, numReturnSequences);
  if (rows > MOST_ROWS)
    throw invalid(
      `a batch has at most ${MOST_ROWS} rows, not ${rows}: give fewer prompts, numBeams or numReturnSequences`,
    );
}

export function invalid(message: string): RuntimeError {
  return new RuntimeError(ErrorCode.invalid_argument, `generate: ${message}`);
}
