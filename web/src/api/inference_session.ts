// Sessions as in onnxruntime-web: tensors in and out, on the CPU or the GPU; the model runs in a worker or here.
import { ErrorCode } from '../schema';
import { invalid, RuntimeError } from '../errors';
import { checkRows } from '../generate/generate_options';
import type { ModelFile } from '../package/model_kinds';
import type { RunInfo, RunResult } from '../session/run_options';
import { blameCallers, checkFunction, checkSignal, fromCaller } from './caller';
import type { Engine } from './engine';
import { withoutEffect } from './env';
import { opened } from './exported';
import { type Fetches, fetchesAndOptions } from './fetches';
import {
  Generation,
  type GenerationOptions,
  LogitsGuard,
  noStream,
  type PromptTokens,
  rowsOf,
  type StartGeneration,
} from './generation';
import { HERE } from '../device/keeper';
import { kernelsWanted, tellKernels } from './kernel_times';
import type * as metadata from './metadata';
import { metadataOf, type ValueMetadata } from './metadata';
import { checkLocations, onDeviceAmong } from './output_location';
import { Profile } from './profile';
import type * as providers from './providers';
import type { ExecutionProvider } from './providers';
import {
  checkedOptions,
  type InferenceRunOptions,
  type InferenceSessionOptions,
  runOptionsWithoutEffect,
  sessionOptionsWithoutEffect,
} from './session_options';
import { listenerOf, localEngine, startEngine, startOther } from './start_engine';
import type { Tensor } from './tensor';
import { eitherOf, unlessAborted } from '../turn';
import { named } from '../wire/values';
import {
  adopted,
  discard,
  fetched,
  isFetched,
  Loans,
  type OnnxValue,
  type OnnxValues,
  onDeviceOf,
  result,
  settled,
  taken,
  threadOf,
} from './values';

export class InferenceSession {
  /** The counters and times of the last run. */
  lastRun: RunInfo | undefined;
  private profile: Profile | undefined;
  private readonly warned = new Set<string>();

  private moving: Promise<void> | undefined;
  private readonly guard = new LogitsGuard();
  /** Ends running work when the session is released. */
  private readonly ending = new AbortController();

  private constructor(
    private runner: Engine,
    /** Loads the same model in this thread. */
    private readonly here: () => Promise<Engine>,
    private readonly options: InferenceSessionOptions,
    private readonly warn: (text: string) => void,
  ) {
    if (options.enableProfiling) this.startProfiling();
  }

  /**
   * Makes a session of a `.pyort` file, which `py-ort export` writes.
   *
   * @param model its URL, or the file itself.
   */
  static async create(model: ModelFile, options?: InferenceSessionOptions): Promise<InferenceSession>;
  /** The same for a part of a buffer. */
  static async create(
    buffer: ArrayBuffer,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSessionOptions,
  ): Promise<InferenceSession>;
  static async create(
    model: ModelFile,
    second: InferenceSessionOptions | number = {},
    byteLength?: number,
    last: InferenceSessionOptions = {},
  ): Promise<InferenceSession> {
    return fromCaller(InferenceSession.create, () => InferenceSession.made(model, second, byteLength, last));
  }

  private static async made(
    model: ModelFile,
    second: InferenceSessionOptions | number,
    byteLength: number | undefined,
    last: InferenceSessionOptions,
  ): Promise<InferenceSession> {
    if (typeof URL === 'undefined') throw inWorklet();
    const options = checkedOptions(typeof second === 'number' ? last : second);
    const source = typeof second === 'number' ? part(model, second, byteLength) : model;
    const listener = listenerOf(options);
    const warn = (text: string) => listener.log(2, 'session', text);
    const idle = [...sessionOptionsWithoutEffect(options), ...withoutEffect()];
    if (idle.length > 0) warn(`without effect here: ${idle.join(', ')}`);
    const starting = opened(source, (file) => startEngine(file, options, listener)).catch((error: unknown) =>
      startOther(error, source, options, listener),
    );
    const { engine, here } = await unlessAborted(starting, listener.signal, ({ engine }) => engine.release());
    try {
      checkLocations(engine, options.preferredOutputLocation);
    } catch (error) {
      await engine.release();
      throw error;
    }
    return new InferenceSession(engine, here, options, warn);
  }

  /** The engine that runs the model: py_ort, or the one of `env.fallback`. */
  get engine(): 'py_ort' | 'fallback' {
    return this.runner.description.engine ?? 'py_ort';
  }

  get inputNames(): readonly string[] {
    return this.runner.description.inputs.map(({ name }) => name);
  }

  get outputNames(): readonly string[] {
    return this.runner.description.outputs.map(({ name }) => name);
  }

  /** The model's types and shapes of inputs. */
  get inputMetadata(): readonly ValueMetadata[] {
    return this.runner.description.inputs.map(metadataOf);
  }

  /** The model's types and shapes of outputs, as far as it has them. */
  get outputMetadata(): readonly ValueMetadata[] {
    return this.runner.description.outputs.map(metadataOf);
  }

  /** The providers that run the model's nodes, best first. */
  get executionProviders(): readonly string[] {
    return this.runner.description.providers;
  }

  /** Returns the provider of each node of the model, with the reason. Reads the file once more. */
  async placement(): Promise<readonly metadata.PlacedNode[]> {
    return fromCaller(InferenceSession.prototype.placement, async () => {
      const { placementOf } = await localEngine();
      return placementOf(this.runner);
    });
  }

  /**
   * Runs the model. Feeds on the GPU keep their owners. For a model with sequences or optionals, `run<OnnxValue>`
   * declares that outputs need not be tensors.
   */
  async run<Output extends OnnxValue = Tensor>(
    feeds: OnnxValues,
    options?: InferenceRunOptions,
  ): Promise<{ readonly [name: string]: Output }>;
  async run<Output extends OnnxValue = Tensor>(
    feeds: OnnxValues,
    fetches: Fetches,
    options?: InferenceRunOptions,
  ): Promise<{ readonly [name: string]: Output }>;
  async run(
    given: OnnxValues,
    second?: Fetches | InferenceRunOptions,
    third: InferenceRunOptions = {},
  ): Promise<{ readonly [name: string]: OnnxValue }> {
    return fromCaller(InferenceSession.prototype.run, () => this.ran(given, second, third));
  }

  private async ran(
    given: OnnxValues,
    second: Fetches | InferenceRunOptions | undefined,
    third: InferenceRunOptions,
  ): Promise<{ readonly [name: string]: OnnxValue }> {
    if (typeof given !== 'object' || given === null) throw invalid('feeds are tensors by the names of inputs');
    const feeds = mapped<OnnxValue>(given, adopted);
    const [fetches, options] = fetchesAndOptions(this.outputNames, second, third);
    checkSignal(options.signal);
    this.warnOnce(runOptionsWithoutEffect(options));
    if (options.terminate)
      throw new RuntimeError(ErrorCode.cancelled, 'the run did not begin, because its options have terminate: true');
    const names = Array.isArray(fetches) ? (fetches as readonly string[]) : Object.keys(fetches);
    const places = Array.isArray(fetches) ? {} : (fetches as { readonly [name: string]: Tensor | null });
    const targets = mapped<Tensor | null>(places, adopted);
    const wanted = onDeviceOf([...Object.values(feeds), ...Object.values(targets)]).map(threadOf);
    const inWorker = this.runner.thread !== HERE && this.engine === 'py_ort';
    const moves = inWorker && wanted.includes(HERE) && this.runner.keeper;
    // A message to a worker copies the elements now; in all other cases they are read later.
    const own = inWorker && wanted.length === 0 ? feeds : mapped(feeds, taken);
    const signal = this.until(options.signal);
    signal.throwIfAborted();
    if (moves) await unlessAborted(this.moveHere(), signal);
    const { runner: engine } = this;
    const waits = Object.entries(own).some(([name, value]) => isFetched(engine, name, value));
    const within = waits ? await unlessAborted(fetchedFeeds(engine, own), signal) : own;
    const loans = new Loans(engine);
    const started = performance.now();
    const running = loans.during(async () => {
      const ran = await engine.run(loans.feeds(within), {
        signal,
        abortable: options.signal != null,
        graphId: options.graphId ?? undefined,
        outputs: names,
        outputsOnGpu: onDeviceAmong(
          names.filter((name) => !named(targets, name)),
          engine,
          this.options.preferredOutputLocation,
        ),
        bind: loans.places(targets),
        profile: this.profile || kernelsWanted() ? 'dispatches' : undefined,
      });
      if (!signal.aborted) loans.deliver();
      await settled(Object.values(ran.outputs), engine.keeper);
      return ran;
    });
    const { keeper } = engine; // which a released engine has no more
    const late = ({ outputs }: RunResult) => discard(outputs, targets, engine.keeper ?? keeper);
    const { outputs, info } = await unlessAborted(running, signal, late);
    this.lastRun = info;
    this.profile?.add(info, started, performance.now());
    tellKernels(info);
    // A lost device has been replaced, and with it the owner of its tensors.
    const holder = engine.keeper;
    return Object.fromEntries(
      names.map((name) => {
        const output = result(named(outputs, name)!, name, holder, named(targets, name) ?? undefined);
        return [name, named(places, name) ?? output];
      }),
    );
  }

  /** The signals that end a run or generation: its own, and the session's release. */
  private until(signal?: AbortSignal): AbortSignal {
    return eitherOf(signal, this.ending.signal);
  }

  /**
   * Generates tokens with a decoder: `for await (const token of session.generate(prompt, { maxNewTokens: 20 }))`. The
   * caches of keys and values stay where the model runs, also for a next prompt with the same start.
   *
   * With `numBeams` it searches: await `result`.
   *
   * @param prompt tokens, or for a batch an array of tokens for each row.
   */
  generate(prompt: PromptTokens, options?: GenerationOptions<number>): Generation<number>;
  generate(
    prompt: readonly PromptTokens[],
    options?: GenerationOptions<readonly (number | null)[]>,
  ): Generation<readonly (number | null)[]>;
  generate(
    prompt: PromptTokens | readonly PromptTokens[],
    // biome-ignore lint/suspicious/noExplicitAny: what a callback takes goes with the prompt
    { signal, onTokens, onLogits, ...options }: GenerationOptions<any> = {},
    // biome-ignore lint/suspicious/noExplicitAny: the overloads say which
  ): Generation<any> {
    checkSignal(signal);
    checkFunction('onTokens', onTokens);
    this.guard.check();
    const { rows, batch } = rowsOf(prompt);
    checkRows(rows.length, options);
    const { numBeams = 1, numReturnSequences = 1 } = options;
    const searches = numBeams > 1;
    if (searches && onTokens) throw noStream();
    const start: StartGeneration = (...hooks) =>
      fromCaller(InferenceSession.prototype.generate, () => this.runner.generate(rows, options, ...hooks));
    const form = { rows: rows.length * numReturnSequences, batch: batch || numReturnSequences > 1, searches };
    const guarded = this.guard.around(onLogits);
    return new Generation(start, form, { signal: this.until(signal), onTokens, onLogits: guarded });
  }

  /** Ends running work and frees the model. Tensors left on the GPU stay until they are disposed of. */
  async release(): Promise<void> {
    this.ending.abort(new RuntimeError(ErrorCode.no_such_session, 'this session was released'));
    await this.moving?.catch(() => undefined);
    await this.runner.release();
  }

  /** Records the times of runs from now on. This costs some time. */
  startProfiling(): void {
    this.profile ??= new Profile(this.runner.description);
  }

  /**
   * Ends the recording and returns it: events in the form of Chrome's tracing, like onnxruntime's profiles.
   *
   * @returns an empty list if nothing was recorded.
   */
  endProfiling(): readonly object[] {
    const events = this.profile?.events ?? [];
    this.profile = undefined;
    return events;
  }

  /** Moves the model to this thread, for the page's device memory. */
  private async moveHere(): Promise<void> {
    this.moving ??= (async () => {
      const there = this.runner;
      this.warn(
        "the model is loaded again in the page's thread, for the page's tensors on a device; " +
          'with env.wasm.proxy = false it is there at once',
      );
      this.runner = await this.here();
      await there.release();
    })().finally(() => {
      this.moving = undefined;
    });
    await this.moving;
  }

  private warnOnce(names: readonly string[]): void {
    const fresh = names.filter((name) => !this.warned.has(name));
    for (const name of fresh) this.warned.add(name);
    if (fresh.length > 0) this.warn(`run options without effect here: ${fresh.join(', ')}`);
  }
}

blameCallers(InferenceSession.prototype, ['generate']);

/** The types of sessions, by onnxruntime-web's names. */
export declare namespace InferenceSession {
  type OnnxValueMapType = OnnxValues;
  type NullableOnnxValueMapType = { readonly [name: string]: OnnxValue | null };
  type FeedsType = OnnxValues;
  type FetchesType = Fetches;
  type ReturnType = { readonly [name: string]: Tensor };
  type SessionOptions = InferenceSessionOptions;
  type RunOptions = InferenceRunOptions;
  type ExecutionProviderConfig = ExecutionProvider;
  type ExecutionProviderName = providers.ExecutionProviderName;
  type ExecutionProviderOption = { readonly name: string };
  type WebGLExecutionProviderOption = providers.WebGLProvider;
  type WebGpuExecutionProviderOption = providers.WebGpuProvider;
  type WebNNContextOptions = providers.WebNNContextOptions;
  type WebNNExecutionProviderName = providers.WebNNExecutionProviderName;
  type WebNNExecutionProviderOption = providers.WebNNExecutionProviderOption;
  type WebNNOptionsWithMLContext = providers.WebNNOptionsWithMLContext;
  type WebNNOptionsWithoutMLContext = providers.WebNNOptionsWithoutMLContext;
  type WebNNOptionsWebGpu = providers.WebNNOptionsWebGpu;
  type WebAssemblyExecutionProviderOption = { readonly name: 'wasm' };
  type CpuExecutionProviderOption = { readonly name: 'cpu' };
  type ValueMetadata = metadata.ValueMetadata;
  type TensorValueMetadata = metadata.TensorValueMetadata;
  type NonTensorValueMetadata = metadata.NonTensorValueMetadata;
}

function inWorklet(): RuntimeError {
  const text = 'worklets have no fetch: run the model in a worker, and send it tensors by a MessagePort';
  return new RuntimeError(ErrorCode.not_implemented, text);
}

function part(buffer: unknown, offset: number, length?: number): Uint8Array {
  const isBuffer =
    buffer instanceof ArrayBuffer || (typeof SharedArrayBuffer !== 'undefined' && buffer instanceof SharedArrayBuffer);
  if (!isBuffer) throw invalid('byteOffset and byteLength are for an ArrayBuffer');
  const size = buffer.byteLength;
  const end = offset + (length ?? size - offset);
  if (!Number.isSafeInteger(offset) || offset < 0 || !(end >= offset && end <= size))
    throw invalid(`bytes ${offset} to ${end} of a buffer of ${size}`);
  return new Uint8Array(buffer as ArrayBuffer, offset, end - offset);
}

const mapped = <V>(values: { readonly [name: string]: V }, change: (value: V) => V): { readonly [name: string]: V } =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

async function fetchedFeeds(engine: Engine, feeds: OnnxValues): Promise<OnnxValues> {
  const each = Object.entries(feeds).map(async ([name, value]) => [name, await fetched(engine, name, value)] as const);
  return Object.fromEntries(await Promise.all(each));
}
