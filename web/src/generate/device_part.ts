// The parts of a decoder's loop that run on the model's device, if its provider supports it: the folder `generate` in
// the provider's own, whose index.ts exports a function of a session. Otherwise everything runs on the CPU.
import type { DeviceSession } from '../device/session';
import type { DType } from '../schema';
import type { TensorOnGpu } from '../wire/values';
import type { Caches } from './caches';
import type { DecoderForm } from './decoder_form';
import type { Ranked, RankingOptions } from './ranking';
import type { Sampling } from './settings';

/** The form of the rows of logits. */
export interface LogitsForm {
  readonly rows: number;
  readonly vocabulary: number;
  readonly dtype: DType;
}

/** Computes something from logits [batch, rows, vocabulary] on the device, or from those in `target`. */
export interface LogitsReader {
  /** The tensor for the logits of runs with one new slot: [batch, 1, vocabulary]. */
  readonly target: TensorOnGpu;
  release(): void;
}

/** The options of a sampler. */
export interface SamplerOptions {
  readonly sampling: Sampling;
  /** Tokens so far of each row. */
  readonly context: readonly (readonly number[])[];
  readonly barred: { readonly tokens: readonly number[]; readonly steps: number };
}

export interface Sampler extends LogitsReader {
  /** The last chosen tokens, one for each row. */
  readonly ids: number;
  /**
   * @param last for each batch the row to use.
   * @returns the tokens, once their bytes are there.
   */
  choose(step: number, logits: TensorOnGpu | undefined, last: readonly number[]): Promise<number[]>;
}

export interface Ranker extends LogitsReader {
  /**
   * @param last for each batch the row to use.
   * @param written all tokens of each row.
   */
  rank(
    logits: TensorOnGpu | undefined,
    last: readonly number[],
    written: readonly (readonly number[])[],
  ): Promise<Ranked[]>;
}

export interface DevicePart {
  caches(form: DecoderForm, batch: number): Caches;
  sampler(form: LogitsForm, options: SamplerOptions): Promise<Sampler>;
  ranker(form: LogitsForm, options: RankingOptions): Promise<Ranker>;
}

export type DevicePartOf = (session: DeviceSession) => DevicePart;
