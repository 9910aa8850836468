// The loop of a decoder, beside its session: tokens in, tokens out. One generation at a time; the next one goes on
// where the caches of the last one hold the beginning of its prompt.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { countersOf } from '../gpu/counters';
import type { Session } from '../session/session';
import { type Caches, HostCaches } from './caches';
import { type DecoderForm, decoderForm } from './decoder_form';
import {
  type FinishReason,
  type GenerateInfo,
  type GenerateOptions,
  invalid,
  type Settings,
  settingsOf,
} from './generate_options';
import { GpuCaches } from './gpu_caches';
import { NAN } from './host_sampler';
import { Rows } from './rows';
import { GpuSteps, HostSteps, type Steps } from './steps';
import { Stops } from './stops';

/** Of each step a token for each row; -1 for rows that are over. */
export type OnTokens = (tokens: readonly number[]) => void;

interface Held {
  readonly caches: Caches;
  readonly batch: number;
  /** What fills the slots, of a batch of one row; slots behind these are of no use. */
  tokens: number[];
}

const generators = new WeakMap<Session, Generator>();

export class Generator {
  private held: Held | undefined;
  private lastTurn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly session: Session) {}

  /** The session's: made when it is first asked for, and gone with it. */
  static of(session: Session): Generator {
    let generator = generators.get(session);
    if (!generator) {
      generator = new Generator(session);
      generators.set(session, generator);
      session.beforeRelease.push(() => generator!.release());
    }
    return generator;
  }

  /** Generates; waits for generations before it. */
  generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal?: AbortSignal,
  ): Promise<GenerateInfo> {
    const start = performance.now();
    const work = async () => {
      signal?.throwIfAborted();
      const settings = settingsOf(options);
      const form = decoderForm(this.session.plan, options.names);
      checkPrompts(prompts, form, settings);
      return this.run(prompts, form, settings, { onTokens, signal, start });
    };
    const turn = this.lastTurn.then(work, work);
    this.lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Frees the caches, when nothing is under way any more. */
  private async release(): Promise<void> {
    await this.lastTurn;
    this.forget();
  }

  private forget(): void {
    this.held?.caches.release();
    this.held = undefined;
  }

  private async run(
    prompts: readonly (readonly number[])[],
    form: DecoderForm,
    settings: Settings,
    { onTokens, signal, start }: { onTokens: OnTokens; signal: AbortSignal | undefined; start: number },
  ): Promise<GenerateInfo> {
    const { session } = this;
    const { gpuSession } = session;
    const held = this.hold(form, prompts, settings);
    const { caches } = held;
    const reused = caches.slots;
    const rows = new Rows(
      form,
      prompts.map(({ length }) => length),
    );
    const context = { session, form, caches, rows, settings, prompts, signal };
    const steps: Steps = gpuSession ? new GpuSteps(context, gpuSession) : new HostSteps(context);
    const times = { first: 0, last: 0 };
    const loop = new Loop(steps, settings, new Stops(prompts.length, settings), (tokens) => {
      times.last = performance.now();
      times.first ||= times.last;
      onTokens(tokens);
    });
    const filled = rows.fill(prompts).map((row) => row.slice(reused));
    const finished = await this.keeping(held, prompts, loop, steps, () => loop.run(filled, signal));
    return {
      finished,
      counts: loop.stops.counts,
      reused,
      prompt_ms: times.first - start,
      decode_ms: times.last - times.first,
      steps: steps.runs.length,
      seed: settings.sampling.seed,
      sampled_on: gpuSession ? 'webgpu' : 'wasm',
      counters: countersOf(steps.runs),
      last_step: steps.runs[steps.runs.length - 1],
    };
  }

  /** The caches, with as much of the prompt as they hold already, and room for the rest. */
  private hold(form: DecoderForm, prompts: readonly (readonly number[])[], settings: Settings): Held {
    const batch = prompts.length;
    const [prompt] = prompts;
    if (this.held && this.held.batch !== batch) this.forget();
    const { gpuSession } = this.session;
    this.held ??= {
      caches: gpuSession ? new GpuCaches(form, batch, gpuSession) : new HostCaches(form, batch),
      batch,
      tokens: [],
    };
    const { caches, tokens } = this.held;
    const same = batch === 1 && settings.reuse ? alike(tokens, prompt) : 0;
    // The last token is always run: its logits are wanted.
    caches.cut(Math.min(same, prompt.length - 1));
    this.held.tokens = [];
    caches.reserve(Math.max(...prompts.map(({ length }) => length)) + settings.maxNewTokens);
    return this.held;
  }

  /** Does the work, and notes what the caches hold after it; if it fails, nothing of use. */
  private async keeping<T>(
    held: Held,
    [prompt]: readonly (readonly number[])[],
    loop: Loop,
    steps: Steps,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } finally {
      const chosen = await loop.settle();
      if (chosen && held.batch === 1) held.tokens = [...prompt, ...chosen].slice(0, held.caches.slots);
      else this.forget();
      steps.release();
    }
  }
}

/** Submits steps, some of them ahead, and tells of tokens as they come. */
class Loop {
  private readonly underWay: Promise<number[]>[] = [];
  private readonly chosen: number[] = [];
  private failed = false;

  constructor(
    private readonly steps: Steps,
    private readonly settings: Settings,
    readonly stops: Stops,
    private readonly tell: OnTokens,
  ) {}

  async run(prompts: readonly (readonly number[])[], signal: AbortSignal | undefined): Promise<FinishReason[]> {
    let submitted = 0;
    const parts = partsOf(prompts);
    const submit = async (tokens?: readonly (readonly number[])[]) => {
      signal?.throwIfAborted();
      const { chosen } = await this.steps.submit(tokens);
      // Whoever waits for it is told; until then nobody may.
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

  /** Throws where the logits of a row that goes on gave no token. */
  private check(tokens: readonly number[]): void {
    const row = tokens.findIndex((token, i) => token < 0 && !this.stops.isOver(i));
    if (row < 0) return;
    const why = tokens[row] === NAN ? 'has logits that are NaN' : 'has no logit that is a finite number';
    const where = tokens.length > 1 ? `, row ${row},` : '';
    throw new RuntimeError(
      ErrorCode.runtime_exception,
      `generate: step ${this.chosen.length + 1}${where} ${why}, so that no token can be chosen: ` +
        'the model, or its precision, breaks on what it was given',
    );
  }

  /** Waits for what is under way; all tokens that were chosen for the first row, or undefined after a failure. */
  async settle(): Promise<number[] | undefined> {
    const rest = await Promise.allSettled(this.underWay.splice(0));
    for (const one of rest) {
      if (one.status === 'rejected') return undefined;
      this.chosen.push(one.value[0]);
    }
    return this.failed ? undefined : this.chosen;
  }
}

/** Of a long prompt its parts: logits, and what attention makes, take memory by its length. */
function partsOf(prompts: readonly (readonly number[])[]): (readonly (readonly number[])[])[] {
  const [prompt] = prompts;
  if (prompts.length > 1 || prompt.length <= LONGEST) return [prompts];
  return Array.from({ length: Math.ceil(prompt.length / LONGEST) }, (_, i) => [
    prompt.slice(i * LONGEST, (i + 1) * LONGEST),
  ]);
}

const LONGEST = 1024;

function alike(a: readonly number[], b: readonly number[]): number {
  let count = 0;
  while (count < a.length && count < b.length && a[count] === b[count]) count++;
  return count;
}

function checkPrompts(prompts: readonly (readonly number[])[], form: DecoderForm, settings: Settings): void {
  if (prompts.length === 0 || prompts.some(({ length }) => length === 0)) throw invalid('a prompt has no tokens');
  const lengths = prompts.map(({ length }) => length);
  if (new Set(lengths).size > 1 && !form.roles.mask && !form.roles.lengths)
    throw invalid('prompts of unequal length, and the model has no attention mask');
  if (prompts.flat().some((token) => !(token >= 0))) throw invalid('a token of the prompt is below 0');
  const longest = Math.max(...lengths);
  const most = Math.min(settings.contextLength, form.capacity ?? Infinity);
  if (longest + settings.maxNewTokens > most)
    throw invalid(
      `a prompt of ${longest} tokens and ${settings.maxNewTokens} new ones, and the model takes ${most} in all: ` +
        'give a smaller maxNewTokens',
    );
}
