// One step of a decoder: new tokens go in, caches go round, and of the logits a token is chosen for each row.
import { DType, ErrorCode } from '../schema';
import { toNumbers, typeName } from '../contract/elements';
import { RuntimeError } from '../errors';
import type { Counters } from '../gpu/counters';
import { nextTurn } from '../gpu/pump';
import type { GpuSession } from '../jsep/gpu_session';
import type { RunOptions, RunResult } from '../session/run_options';
import type { Session } from '../session/session';
import { isContainer, isOnGpu, named, type TensorOnCpu, type TensorOnGpu, type Value } from '../wire/values';
import type { Caches } from './caches';
import type { DecoderForm } from './decoder_form';
import type { Settings } from './generate_options';
import { GpuSampler } from './gpu_sampler';
import { HostSampler } from './host_sampler';
import { type NewSlots, type Rows, tensor } from './rows';

/** All that steps of one generation share. */
export interface StepContext {
  readonly session: Session;
  readonly form: DecoderForm;
  readonly caches: Caches;
  readonly rows: Rows;
  readonly settings: Settings;
  /** The tokens of each prompt, also those that are in the caches already. */
  readonly prompts: readonly (readonly number[])[];
  readonly signal: AbortSignal | undefined;
}

export interface Steps {
  /** How many steps may be under way before the first one's tokens are there. */
  readonly ahead: number;
  /** What each run made. */
  readonly runs: readonly Counters[];
  /** Submits a step: with these tokens for each row, or with those that were chosen last. */
  submit(tokens?: readonly (readonly number[])[]): Promise<{ readonly chosen: Promise<number[]> }>;
  /** Runs tokens through the model whose logits nobody wants. */
  absorb(tokens: readonly (readonly number[])[]): Promise<void>;
  release(): void;
}

const FLOATS = [DType.float32, DType.float16, DType.bfloat16];

/** What is the same on both providers: the runs. */
abstract class AnySteps {
  readonly runs: Counters[] = [];
  protected step = 0;

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

  protected ids(tokens: readonly (readonly number[])[]): TensorOnCpu {
    return tensor(this.context.form.roles.ids!, [tokens.length, tokens[0].length], tokens.flat());
  }

  protected barred() {
    return { tokens: this.context.settings.eos, steps: this.context.settings.minNewTokens };
  }

  /** The rows that count, of logits that may be of the last slots only. */
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

export class HostSteps extends AnySteps implements Steps {
  readonly ahead = 0;
  private sampler: HostSampler | undefined;
  private last: readonly number[] = [];

  async submit(tokens: readonly (readonly number[])[] = this.last.map((token) => [token])) {
    const slots = this.slotsFor(tokens[0].length);
    // Tokens leave, and a cancellation arrives, between steps only.
    await nextTurn();
    const { outputs } = await this.run(slots, this.ids(tokens), {});
    const logits = checkLogits(outputs[this.context.form.logits]) as TensorOnCpu;
    const vocabulary = logits.dims[2];
    const { settings, prompts } = this.context;
    this.sampler ??= new HostSampler(settings.sampling, vocabulary, checked(prompts, vocabulary), this.barred());
    const last = this.lastRows(slots, logits.dims);
    this.last = this.sampler.choose(last.map((row, i) => rowOf(logits, i * logits.dims[1] + row)));
    return { chosen: Promise.resolve([...this.last]) };
  }

  async absorb(tokens: readonly (readonly number[])[]): Promise<void> {
    await nextTurn();
    await this.run(this.slotsFor(tokens[0].length), this.ids(tokens), {});
  }

  release(): void {}
}

export class GpuSteps extends AnySteps implements Steps {
  readonly ahead = 2;
  private sampler: GpuSampler | undefined;

  constructor(
    context: StepContext,
    private readonly gpu: GpuSession,
  ) {
    super(context);
  }

  async submit(tokens?: readonly (readonly number[])[]) {
    const { form, rows, caches } = this.context;
    const slots = this.slotsFor(tokens?.[0].length ?? 1);
    if (!tokens && this.sampler) {
      const bind = { ...caches.options.bind, [form.logits]: this.sampler.target };
      await this.run(slots, this.chosenLast(), { bind });
      return { chosen: this.sampler.choose(this.step++, undefined, rows.last(slots)) };
    }
    const { outputs } = await this.run(slots, this.ids(tokens!), {});
    const logits = named(outputs, form.logits) as TensorOnGpu;
    try {
      this.sampler ??= await this.makeSampler(logits);
      return { chosen: this.sampler.choose(this.step++, logits, this.lastRows(slots, logits.dims)) };
    } finally {
      this.gpu.provider.buffers.free(logits.gpuId);
    }
  }

  async absorb(tokens: readonly (readonly number[])[]): Promise<void> {
    const { caches, form } = this.context;
    const but = (names: readonly string[] = []) => names.filter((name) => name !== form.logits);
    const { outputs, outputsOnGpu } = caches.options;
    await this.run(this.slotsFor(tokens[0].length), this.ids(tokens), {
      outputs: but(outputs),
      outputsOnGpu: but(outputsOnGpu),
    });
  }

  private makeSampler(logits: TensorOnGpu): Promise<GpuSampler> {
    checkLogits(logits);
    const { settings, prompts } = this.context;
    const vocabulary = logits.dims[2];
    return GpuSampler.make(this.gpu, {
      sampling: settings.sampling,
      vocabulary,
      logits: logits.dtype,
      context: checked(prompts, vocabulary),
      barred: this.barred(),
    });
  }

  private chosenLast(): TensorOnGpu {
    const { form, rows } = this.context;
    return { dtype: form.roles.ids!.dtype, dims: [rows.count, 1], gpuId: this.sampler!.ids };
  }

  release(): void {
    this.sampler?.release();
  }
}

/** Tokens beyond the vocabulary are none: most models would take another one for them. */
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
