// One step of a decoder: new tokens go in, caches are passed on, and a token for each row is chosen from the logits.
import type { Counters } from '../device/counters';
import type { RunOptions, RunResult } from '../session/run_options';
import type { Session } from '../session/session';
import type { TensorOnCpu, TensorOnGpu, Value } from '../wire/values';
import type { Caches } from './caches';
import type { DecoderForm } from './decoder_form';
import type { Settings } from './settings';
import { BeamSearch } from './beam_search';
import type { DevicePart, LogitsForm, LogitsReader, Ranker, Sampler } from './device_part';
import { HostSampler } from './host_sampler';
import type { LogitsFilter } from './logits_filter';
import { rank, type Ranked, type RankingOptions } from './ranking';
import { type NewSlots, type Rows, tensor } from './rows';
import { DType, ErrorCode, RuntimeError, isContainer, isOnGpu, named, nextTurn, toNumbers, typeName } from './outside';

/** The common state of one generation's steps. */
export interface StepContext {
  readonly session: Session;
  readonly form: DecoderForm;
  readonly caches: Caches;
  readonly rows: Rows;
  readonly settings: Settings;
  /** Changes logits, which then are on the CPU. */
  readonly filter: LogitsFilter | undefined;
  readonly isOver?: (row: number) => boolean;
  /** The tokens of each prompt, also those that are in the caches already. */
  readonly prompts: readonly (readonly number[])[];
  readonly signal: AbortSignal | undefined;
}

/** Runs of the model, and the use of their logits. */
export interface Runs {
  /** The counters of each run. */
  readonly runs: readonly Counters[];
  /** Runs tokens through the model without using their logits. */
  absorb(tokens: Tokens): Promise<void>;
  release(): void;
}

export interface Steps extends Runs {
  /** The number of steps to submit before the first one's tokens are there. */
  readonly ahead: number;
  /** Submits a step: with these tokens for each row, or with the last chosen ones. */
  submit(tokens?: Tokens): Promise<{ readonly chosen: Promise<number[]> }>;
}

export interface RankingSteps extends Runs {
  /**
   * Runs tokens through the model.
   *
   * @param written all tokens of each row after it.
   * @returns the likeliest tokens after each row, once they are there.
   */
  rank(tokens: Tokens, written: Tokens): Promise<Ranked[]>;
}

/** The tokens of each row. */
type Tokens = readonly (readonly number[])[];

const FLOATS = [DType.float32, DType.float16, DType.bfloat16];

/** The common part of both providers. */
abstract class AnyRuns {
  readonly runs: Counters[] = [];

  constructor(protected readonly context: StepContext) {}

  protected slotsFor(count: number): NewSlots {
    return { before: this.context.caches.slots, count };
  }

  protected async run(slots: NewSlots, ids: Value, options: RunOptions): Promise<RunResult> {
    const { session, form, rows, caches, signal } = this.context;
    const feeds = { ...rows.feeds(slots), ...caches.feeds(), [form.roles.ids!.name]: ids };
    const result = await session.run(feeds, { ...caches.options, ...options, signal });
    caches.advance(slots.count, result.outputs);
    this.runs.push(result.info.counters);
    return result;
  }

  async absorb(tokens: Tokens): Promise<void> {
    const { outputs, outputsOnGpu } = this.context.caches.options;
    await this.run(this.slotsFor(tokens[0].length), this.ids(tokens), {
      outputs: this.butLogits(outputs),
      outputsOnGpu: this.butLogits(outputsOnGpu),
    });
  }

  protected butLogits(names: readonly string[] = []): readonly string[] {
    return names.filter((name) => name !== this.context.form.logits);
  }

  protected ids(tokens: Tokens): TensorOnCpu {
    return tensor(this.context.form.roles.ids!, [tokens.length, tokens[0].length], tokens.flat());
  }

  protected barred() {
    return { tokens: this.context.settings.eos, steps: this.context.settings.minNewTokens };
  }

  /** The rows to use, of logits that may cover only the last slots. */
  protected lastRows(slots: NewSlots, dims: readonly number[]): number[] {
    const rows = this.context.rows.last(slots).map((last) => last - slots.count + dims[1]);
    if (rows.every((row) => row >= 0)) return rows;
    throw new RuntimeError(
      ErrorCode.not_implemented,
      `generate: prompts of unequal length, and the model gives logits of the last ${dims[1]} of ${slots.count} ` +
        'places only: give prompts of one length, or one at a time',
    );
  }
}

/** With logits on the CPU, wherever the caches are. */
abstract class HostRuns extends AnyRuns implements Runs {
  protected override async run(slots: NewSlots, ids: Value, options: RunOptions): Promise<RunResult> {
    // Tokens leave, and a cancellation arrives, between steps only.
    await nextTurn();
    return super.run(slots, ids, options);
  }

  /** The logits behind each row, filtered. @param written the new tokens of each row. */
  protected async logitsOf(tokens: Tokens, written: () => Tokens): Promise<readonly Float32Array[]> {
    const { caches, form, filter, isOver } = this.context;
    const slots = this.slotsFor(tokens[0].length);
    const outputsOnGpu = this.butLogits(caches.options.outputsOnGpu);
    const { outputs } = await this.run(slots, this.ids(tokens), { outputsOnGpu });
    const logits = checkLogits(outputs[form.logits]) as TensorOnCpu;
    const rows = this.lastRows(slots, logits.dims).map((row, i) => rowOf(logits, i * logits.dims[1] + row));
    if (!filter) return rows;
    const [before, filtered] = [written(), [] as Float32Array[]];
    for (const [i, row] of rows.entries()) filtered.push(isOver?.(i) ? row : await filter.apply(row, before[i], i));
    return filtered;
  }

  release(): void {}
}

export class HostSteps extends HostRuns implements Steps {
  readonly ahead = 0;
  private sampler: HostSampler | undefined;
  private readonly written = this.context.prompts.map((): number[] => []);

  async submit(tokens: Tokens = this.written.map((row) => row.slice(-1))) {
    const logits = await this.logitsOf(tokens, () => this.written);
    const vocabulary = logits[0].length;
    const { settings, prompts } = this.context;
    this.sampler ??= new HostSampler(settings.sampling, vocabulary, checked(prompts, vocabulary), this.barred());
    const chosen = this.sampler.choose(logits);
    chosen.forEach((token, row) => this.written[row].push(token));
    return { chosen: Promise.resolve(chosen) };
  }
}

export class HostRankingSteps extends HostRuns implements RankingSteps {
  async rank(tokens: Tokens, written: Tokens): Promise<Ranked[]> {
    const { prompts } = this.context;
    const promptOf = (row: number) => prompts[Math.floor((row * prompts.length) / written.length)];
    const logits = await this.logitsOf(tokens, () => written.map((row, i) => row.slice(promptOf(i).length)));
    checked(this.context.prompts, logits[0].length);
    const options = rankingOptions(this.context.settings, logits[0].length);
    return logits.map((row, i) => rank(row, options, written[i]));
  }
}

abstract class DeviceRuns<Reader extends LogitsReader> extends AnyRuns implements Runs {
  protected reader: Reader | undefined;

  constructor(
    context: StepContext,
    protected readonly device: DevicePart,
  ) {
    super(context);
  }

  protected abstract makeReader(form: LogitsForm): Promise<Reader>;

  /** Runs tokens through the model; `use` receives the logits, unless they are in the reader's target. */
  protected async logitsOf<T>(
    ids: Value,
    count: number,
    use: (reader: Reader, logits: TensorOnGpu | undefined, last: readonly number[]) => T,
  ): Promise<T> {
    const { form, rows, caches } = this.context;
    const slots = this.slotsFor(count);
    if (count === 1 && this.reader) {
      const bind = { ...caches.options.bind, [form.logits]: this.reader.target };
      await this.run(slots, ids, { bind });
      return use(this.reader, undefined, rows.last(slots));
    }
    const { outputs } = await this.run(slots, ids, {});
    const logits = named(outputs, form.logits) as TensorOnGpu;
    try {
      const { dtype, dims } = checkLogits(logits);
      checked(this.context.prompts, dims[2]);
      this.reader ??= await this.makeReader({ rows: rows.count, vocabulary: dims[2], dtype });
      return use(this.reader, logits, this.lastRows(slots, dims));
    } finally {
      this.context.session.provider!.buffers.free(logits.gpuId);
    }
  }

  release(): void {
    this.reader?.release();
  }
}

export class DeviceSteps extends DeviceRuns<Sampler> implements Steps {
  readonly ahead = 2;
  private step = 0;

  async submit(tokens?: Tokens) {
    const ids = tokens ? this.ids(tokens) : this.chosenLast();
    return this.logitsOf(ids, tokens?.[0].length ?? 1, (sampler, logits, last) => ({
      chosen: sampler.choose(this.step++, logits, last),
    }));
  }

  protected makeReader(form: LogitsForm): Promise<Sampler> {
    const { settings, prompts } = this.context;
    return this.device.sampler(form, {
      sampling: settings.sampling,
      context: prompts,
      barred: this.barred(),
    });
  }

  private chosenLast(): TensorOnGpu {
    const { form, rows } = this.context;
    return { dtype: form.roles.ids!.dtype, dims: [rows.count, 1], gpuId: this.reader!.ids };
  }
}

export class DeviceRankingSteps extends DeviceRuns<Ranker> implements RankingSteps {
  async rank(tokens: Tokens, written: Tokens): Promise<Ranked[]> {
    return await this.logitsOf(this.ids(tokens), tokens[0].length, (ranker, logits, last) =>
      ranker.rank(logits, last, written),
    );
  }

  protected makeReader(form: LogitsForm): Promise<Ranker> {
    return this.device.ranker(form, rankingOptions(this.context.settings, form.vocabulary));
  }
}

/** Ends that are not allowed yet are skipped: that many more are needed. */
function rankingOptions(settings: Settings, vocabulary: number): RankingOptions {
  const { eos, minNewTokens, sampling } = settings;
  const barred = minNewTokens > 0 ? eos.length : 0;
  const count = Math.min(BeamSearch.candidates(settings) + barred, vocabulary);
  return { count, penalty: sampling.repetitionPenalty };
}

/** Tokens beyond the vocabulary are refused: most models would use another one instead. */
function checked(prompts: readonly (readonly number[])[], vocabulary: number): readonly (readonly number[])[] {
  const wrong = prompts.flat().find((token) => token >= vocabulary);
  if (wrong === undefined) return prompts;
  throw new RuntimeError(
    ErrorCode.invalid_argument,
    `generate: token ${wrong} of the prompt, where the model has logits for ${vocabulary} tokens`,
  );
}

function checkLogits(value: Value): TensorOnCpu | TensorOnGpu {
  if (!isContainer(value) && value.dims.length === 3 && FLOATS.includes(value.dtype)) return value;
  const what = isContainer(value) ? 'no tensor' : `${typeName(value.dtype)}[${value.dims}]`;
  throw new RuntimeError(
    ErrorCode.not_implemented,
    `generate: the logits are ${what}, and should be floats [batch, length, vocabulary]`,
  );
}

function rowOf(logits: TensorOnCpu, row: number): Float32Array {
  const [vocabulary, size] = [logits.dims[2], logits.dtype === DType.float32 ? 4 : 2];
  if (isOnGpu(logits)) throw new Error('these logits are on the GPU');
  const bytes = logits.data.subarray(row * vocabulary * size, (row + 1) * vocabulary * size);
  return Float32Array.from(toNumbers(logits.dtype, bytes.slice()));
}
