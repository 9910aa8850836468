// What decoders leave to the device that their model runs on, where its provider has a part in this file: the folder
// `generate` in its own, whose index.ts exports a function of a session. For others all is done on the CPU.
import type { DeviceSession } from '../device/session';
import type { DType } from '../schema';
import type { TensorOnGpu } from '../wire/values';
import type { Caches } from './caches';
import type { DecoderForm } from './decoder_form';
import type { Ranked, RankingOptions } from './ranking';
import type { Sampling } from './settings';

/** What rows of logits there are. */
export interface LogitsForm {
  readonly rows: number;
  readonly vocabulary: number;
  readonly dtype: DType;
}

/** Makes something of logits [batch, rows, vocabulary] on the device, or of those in `target`. */
export interface LogitsReader {
  /** Where runs of one new slot leave their logits: [batch, 1, vocabulary]. */
  readonly target: TensorOnGpu;
  release(): void;
}

/** Of what a sampler is made. */
export interface SamplerOptions {
  readonly sampling: Sampling;
  /** Tokens so far of each row. */
  readonly context: readonly (readonly number[])[];
  readonly barred: { readonly tokens: readonly number[]; readonly steps: number };
}

export interface Sampler extends LogitsReader {
  /** The tokens that were chosen last, one for each row. */
  readonly ids: number;
  /**
   * @param last of each batch the row that counts.
   * @returns the tokens, once their bytes are there.
   */
  choose(step: number, logits: TensorOnGpu | undefined, last: readonly number[]): Promise<number[]>;
}

export interface Ranker extends LogitsReader {
  /**
   * @param last of each batch the row that counts.
   * @param written all tokens that each row has.
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
