// The loop of a decoder's session: tokens in, tokens out. One generation at a time; the next one continues where the
// last one's caches have the start of its prompt.
import { parts } from 'virtual:parts';
import type { Counters } from '../device/counters';
import type { Session } from '../session/session';
import { BeamLoop } from './beam_loop';
import { type Caches, HostCaches } from './caches';
import { type DecoderForm, decoderForm } from './decoder_form';
import type { FinishReason, GenerateInfo, GenerateOptions, OnLogits } from './generate_options';
import { type Settings, settingsOf } from './settings';
import type { DevicePart } from './device_part';
import { LogitsFilter } from './logits_filter';
import { Loop, type OnTokens } from './loop';
import { Rows } from './rows';
import { DeviceRankingSteps, DeviceSteps, HostRankingSteps, HostSteps, type StepContext, type Steps } from './steps';
import { Stops } from './stops';
import { CORE_PROVIDER, ErrorCode, RuntimeError, checkRows, countersOf, invalid, unlessAborted } from './outside';

interface Held {
  readonly caches: Caches;
  readonly batch: number;
  /** The tokens in the slots, for a batch of one row; later slots are unused. */
  tokens: number[];
}

/** The tokens of each row. */
type Tokens = readonly (readonly number[])[];

/** The result of a loop. */
interface Outcome {
  readonly finished: readonly FinishReason[];
  readonly counts: readonly number[];
  readonly scores?: readonly number[];
  /** The times when the first and the last tokens were chosen, by performance.now. */
  readonly times: { readonly first: number; readonly last: number };
  readonly runs: readonly Counters[];
}

const generators = new WeakMap<Session, Generator>();

export class Generator {
  private held: Held | undefined;
  private lastTurn: Promise<unknown> = Promise.resolve();

  /** For a session with a device whose provider has a part here. */
  private readonly device: DevicePart | undefined;

  private constructor(private readonly session: Session) {
    const { gpuSession } = session;
    this.device = gpuSession && parts[gpuSession.provider.name]?.(gpuSession);
  }

  /** The session's generator: made on first use, and released with the session. */
  static of(session: Session): Generator {
    let generator = generators.get(session);
    if (!generator) {
      generator = new Generator(session);
      generators.set(session, generator);
      session.beforeRelease.push(() => generator!.release());
    }
    return generator;
  }

  /** Generates after earlier generations, unless the signal aborts before it begins. */
  generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal?: AbortSignal,
    onLogits?: OnLogits,
  ): Promise<GenerateInfo> {
    const start = performance.now();
    const work = async () => {
      const settings = settingsOf(options);
      const form = decoderForm(this.session.plan, options.names);
      checkRows(prompts.length, options);
      checkPrompts(prompts, form, settings);
      // A search finds several sequences in one row; draws need a row each.
      const times = settings.beams.count > 1 ? 1 : settings.sequences;
      const rows = prompts.flatMap((prompt) => Array.from({ length: times }, () => prompt));
      const filter = LogitsFilter.of(settings, onLogits, signal);
      return this.run(rows, form, settings, { onTokens, filter, signal, start });
    };
    const before = this.lastTurn;
    const turn = unlessAborted(before, signal).then(work);
    // The next one waits for the one before, also if this one ends earlier.
    this.lastTurn = turn.catch(() => before);
    return turn;
  }

  /** Frees the caches, after all generations. */
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
    { onTokens, filter, signal, start }: Pick<StepContext, 'filter' | 'signal'> & { onTokens: OnTokens; start: number },
  ): Promise<GenerateInfo> {
    const { session } = this;
    const held = this.hold(form, prompts, settings);
    const { caches } = held;
    const reused = caches.slots;
    const rows = new Rows(
      form,
      prompts.map(({ length }) => length),
    );
    const context = { session, form, caches, rows, settings, filter, prompts, signal };
    const filled = rows.fill(prompts).map((row) => row.slice(reused));
    const searches = settings.beams.count > 1;
    const outcome = await (searches
      ? this.search(context, filled, onTokens)
      : this.follow(held, context, filled, onTokens));
    const { finished, counts, scores, times, runs } = outcome;
    return {
      finished,
      counts,
      reused,
      scores,
      prompt_ms: times.first - start,
      decode_ms: times.last - times.first,
      steps: runs.length,
      seed: settings.sampling.seed,
      sampled_on: this.samplerFor(context) ? session.provider!.name : CORE_PROVIDER,
      counters: countersOf(runs),
      last_step: runs[runs.length - 1],
    };
  }

  /** The device's part, where the device chooses tokens. */
  private samplerFor({ filter }: StepContext): DevicePart | undefined {
    return filter ? undefined : this.device;
  }

  /** Token by token; notes what the caches hold after it; if it fails, nothing of use. */
  private async follow(held: Held, context: StepContext, prompts: Tokens, onTokens: OnTokens): Promise<Outcome> {
    const device = this.samplerFor(context);
    const { settings, signal } = context;
    const stops = new Stops(prompts.length, settings);
    const isOver = (row: number) => stops.isOver(row);
    const steps: Steps = device ? new DeviceSteps(context, device) : new HostSteps({ ...context, isOver });
    const times = { first: 0, last: 0 };
    const loop = new Loop(steps, settings, stops, (tokens) => {
      times.last = performance.now();
      times.first ||= times.last;
      onTokens(tokens);
    });
    try {
      const finished = await loop.run(prompts, signal);
      return { finished, counts: stops.counts, times, runs: steps.runs };
    } finally {
      const chosen = await loop.settle();
      if (chosen && held.batch === 1) held.tokens = [...context.prompts[0], ...chosen].slice(0, held.caches.slots);
      else this.forget();
      steps.release();
    }
  }

  /** Searches by beams, whose caches are useless to later generations; all tokens are reported at the end. */
  private async search(context: StepContext, prompts: Tokens, onTokens: OnTokens): Promise<Outcome> {
    const device = this.samplerFor(context);
    const loop = new BeamLoop(context, (one) =>
      device ? new DeviceRankingSteps(one, device) : new HostRankingSteps(one),
    );
    try {
      const best = await loop.run(prompts);
      const counts = best.map(({ tokens }) => tokens.length);
      for (let i = 0; i < Math.max(...counts); i++) onTokens(best.map(({ tokens }) => tokens[i] ?? -1));
      const times = { first: loop.promptEnd, last: performance.now() };
      const finished = best.map(({ reason }) => reason);
      return { finished, counts, scores: best.map(({ score }) => score), times, runs: loop.runs };
    } finally {
      this.forget();
      loop.release();
    }
  }

  /** The caches, with the part of the prompt that they already have, and room for the rest. */
  private hold(form: DecoderForm, prompts: readonly (readonly number[])[], settings: Settings): Held {
    const batch = prompts.length;
    const [prompt] = prompts;
    if (this.held && this.held.batch !== batch) this.forget();
    const { device } = this;
    this.held ??= {
      caches: device?.caches(form, batch) ?? new HostCaches(form, batch),
      batch,
      tokens: [],
    };
    const { caches, tokens } = this.held;
    const same = batch === 1 && settings.reuse ? alike(tokens, prompt) : 0;
    // The last token is always run, for its logits.
    caches.cut(Math.min(same, prompt.length - 1));
    this.held.tokens = [];
    reserve(caches, Math.max(...prompts.map(({ length }) => length)) + settings.maxNewTokens);
    return this.held;
  }
}

/** An error due to missing memory names the purpose of the memory. */
function reserve(caches: Caches, slots: number): void {
  try {
    caches.reserve(slots);
  } catch (error) {
    if (!(error instanceof RuntimeError) || error.code !== ErrorCode.out_of_memory) throw error;
    throw new RuntimeError(
      error.code,
      `generate: caches of ${slots} tokens, prompt and maxNewTokens: ${error.message}: give a smaller maxNewTokens`,
    );
  }
}

function alike(a: readonly number[], b: readonly number[]): number {
  let count = 0;
  while (count < a.length && count < b.length && a[count] === b[count]) count++;
  return count;
}

function checkPrompts(prompts: Tokens, form: DecoderForm, settings: Settings): void {
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
