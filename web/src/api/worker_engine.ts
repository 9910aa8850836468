// A model that runs in a worker, so that the page's thread stays free.
import { type DType, ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import { type HostWorker, host } from '../host';
import { compileCore } from '../core/compiled';
import type { GenerateInfo, GenerateOptions, OnLogits } from '../generate/generate_options';
import type { OnTokens } from '../generate/loop';
import type { Feeds } from '../session/feeds';
import type { RunResult } from '../session/run_options';
import { CORE_PROVIDER } from '../contract/providers';
import type { Engine, EngineDescription, EngineRequest, EngineRunOptions, Listener, RuntimeSettings } from './engine';
import { nameOf } from './providers';
import type { DeviceLocation, TensorKeeper } from '../device/keeper';
import type { Answer, Question } from './worker_messages';

type Asked = Question extends infer Q ? (Q extends Question ? Omit<Q, 'id'> : never) : never;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly listener?: Partial<Listener>;
}

/** There is no worker, or it has failed: a session may run in the page's thread instead. */
export class WorkerFailed extends RuntimeError {
  constructor(why: string) {
    super(ErrorCode.fail, `the worker of py_ort failed: ${why}`);
  }
}

/** A worker for the page's sessions. */
class SessionWorker {
  private readonly pending = new Map<number, Pending>();
  private next = 1;
  private ended: WorkerFailed | undefined;
  private readonly logs = new Map<number, Listener['log']>();

  constructor(private readonly worker: HostWorker) {
    worker.onerror = ({ message, filename, lineno }) => {
      const where = filename ? ` (${filename}:${lineno})` : '';
      this.ended = new WorkerFailed(`${message || 'its script could not be loaded'}${where}`);
      for (const { reject } of this.pending.values()) reject(this.ended);
      this.pending.clear();
      worker.terminate();
    };
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.tell === 'log') this.logs.get(data.id)?.(data.severity, data.category, data.text);
      else this.heard(data);
    };
  }

  get gone(): boolean {
    return this.ended !== undefined;
  }

  /** Sends a question; returns its number with the answer. */
  ask<T>(question: Asked, listener: Partial<Listener> = {}): { readonly id: number; readonly answer: Promise<T> } {
    const id = this.next++;
    const { signal, log } = listener;
    if (log) this.logs.set(id, log);
    const answer = new Promise<T>((resolve, reject) => {
      if (this.ended) return reject(this.ended);
      signal?.throwIfAborted();
      this.pending.set(id, { resolve: resolve as (value: unknown) => void, reject, listener });
      this.worker.ref?.();
      this.worker.postMessage({ ...question, id } as Question);
    });
    const abort = () => this.post({ ask: 'abort', of: id });
    signal?.addEventListener('abort', abort);
    const done = () => signal?.removeEventListener('abort', abort);
    answer.then(done, done);
    return { id, answer };
  }

  /** A session has ended: its listener is no longer called. */
  forget(session: number): void {
    this.logs.delete(session);
  }

  private heard(data: Exclude<Answer, { tell: 'log' }>): void {
    const pending = this.pending.get(data.id);
    if (data.tell === 'progress') return pending?.listener?.onProgress?.(data.stage, data.done, data.total);
    if (data.tell === 'tokens') return pending?.listener?.onTokens?.(data.tokens);
    if (data.tell === 'logits') return void this.change(data, pending!);
    this.pending.delete(data.id);
    if (this.pending.size === 0) this.worker.unref?.();
    if (data.tell === 'value') return pending?.resolve(data.value);
    pending?.reject(
      data.code === ErrorCode.cancelled
        ? (pending.listener?.signal?.reason ?? new DOMException(data.message, 'AbortError'))
        : failed(data),
    );
  }

  /** Has logits changed. */
  private async change({ id, given }: Answer & { tell: 'logits' }, { reject, listener }: Pending): Promise<void> {
    try {
      const logits = (await listener!.onLogits!(...given)) ?? given[0];
      this.post({ ask: 'choose', of: id, logits });
    } catch (error) {
      reject(error);
      this.post({ ask: 'abort', of: id });
    }
  }

  /** Says something whose answer nobody waits for. */
  private post(question: Asked): void {
    this.worker.postMessage({ ...question, id: this.next++ } as Question);
  }
}

/** The worker's error, with its stack there. */
function failed({ code, message, stack, place }: Answer & { tell: 'error' }): RuntimeError {
  return Object.assign(new RuntimeError(code, message, place), { stack });
}

/** The running workers, by the URLs of their scripts. */
const shared = new Map<string, SessionWorker>();

/** The script of a session's worker: the smaller one if only the CPU is requested, unless the other runs already. */
export function scriptFor({ executionProviders, runtime: { files } }: EngineRequest): URL {
  const onCpu = executionProviders.length > 0 && executionProviders.every((each) => nameOf(each) === CORE_PROVIDER);
  return new URL(onCpu && shared.get(files.worker)?.gone !== false ? files.plain : files.worker);
}

/**
 * It accepts questions at once: those sent before its script has run wait for it.
 *
 * @throws WorkerFailed if the page's policy forbids workers; if the script is missing, the callers receive the failure.
 */
function sharedWorker(url: URL, { files, wasmBinary, likely, threads }: RuntimeSettings): SessionWorker {
  const known = shared.get(url.href);
  if (known && !known.gone) return known;
  let started: HostWorker;
  try {
    started = host.startWorker(url, 'py_ort');
  } catch (error) {
    throw new WorkerFailed(messageOf(error));
  }
  const worker = new SessionWorker(started);
  shared.set(url.href, worker);
  // The core is fetched and compiled here while the worker's script is being fetched.
  const wasm = wasmBinary ?? new URL(files.wasm);
  const [relaxedSimd, simd128] = [new URL(files.relaxedSimd), new URL(files.simd128)];
  compileCore({ wasm, relaxedSimd, simd128, likely }, threads && host.withoutSharing(true) === undefined)
    .then((core) => worker.ask({ ask: 'compiled', core }).answer)
    .catch(() => worker.ask({ ask: 'compiled', core: undefined }).answer)
    .catch(() => undefined);
  return worker;
}

export class WorkerEngine implements Engine {
  private constructor(
    readonly thread: SessionWorker,
    private readonly id: number,
    readonly description: EngineDescription,
    readonly keeper: TensorKeeper | undefined,
    readonly request: EngineRequest,
  ) {}

  /** @param url of the worker's script. @throws WorkerFailed if there can be none, or it ends meanwhile. */
  static async create(request: EngineRequest, url: URL, listener: Listener): Promise<WorkerEngine> {
    const worker = sharedWorker(url, request.runtime);
    const { id, answer } = worker.ask<{ description: EngineDescription; location?: DeviceLocation }>(
      { ask: 'create', request },
      listener,
    );
    const { description, location } = await answer;
    const keeper: TensorKeeper | undefined = location && {
      thread: worker,
      location,
      download: (gpuId: number, dtype: DType, dims: readonly number[]) =>
        worker.ask<Uint8Array>({ ask: 'download', session: id, gpuId, dtype, dims }).answer,
      free: (gpuId: number) => void worker.ask({ ask: 'free', session: id, gpuId }).answer.catch(() => undefined),
    };
    return new WorkerEngine(worker, id, description, keeper, request);
  }

  run(feeds: Feeds, { signal, ...options }: EngineRunOptions): Promise<RunResult> {
    return this.thread.ask<RunResult>({ ask: 'run', session: this.id, feeds, options }, { signal }).answer;
  }

  generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal: AbortSignal,
    onLogits?: OnLogits,
  ): Promise<GenerateInfo> {
    const question = { ask: 'generate', session: this.id, prompts, options, filters: !!onLogits } as const;
    return this.thread.ask<GenerateInfo>(question, { onTokens, onLogits, signal }).answer;
  }

  async release(): Promise<void> {
    await this.thread.ask<void>({ ask: 'release', session: this.id }).answer;
    this.thread.forget(this.id);
  }
}
