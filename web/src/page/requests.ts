// Python's requests to a worker: one handler per message of the schema.
import {
  AckT,
  type AskDeviceT,
  Body,
  type ChosenLogitsT,
  type CancelT,
  type CreateSessionT,
  DeviceAnswerT,
  DeviceOpenedT,
  DType,
  GeneratedT,
  type GenerateT,
  type GetStatsT,
  type JsepAllocT,
  JsepBufferT,
  type JsepCopyAsyncT,
  type JsepCopyT,
  type JsepCreateKernelT,
  type JsepFreeT,
  JsepBytesT,
  JsepKernelT,
  type JsepReleaseKernelT,
  type JsepRunT,
  LogitsT,
  type OpenDeviceT,
  PongT,
  type ReleaseGraphT,
  type ReleaseSessionT,
  RunResultT,
  type RunT,
  SessionCreatedT,
  StatsT,
  ErrorCode,
} from '../schema';
import { toNumbers } from '../contract/elements';
import { RuntimeError } from '../errors';
import type { OnLogits } from '../generate/generate_options';
import { generatorOf } from '../generate/load';
import { providerNamed, type Runtime } from '../session/runtime';
import { ofUrls } from '../session/model_source';
import { Session } from '../session/session';
import { type ReceivedMessage, readBytes, TensorWriter } from '../wire/messages';
import { named } from '../wire/values';
import type { Answer, Connection } from './connection';
import type {
  DeviceOptions,
  GenerateInfo,
  GenerateOptions,
  PageStats,
  RunInfo,
  SessionInfo,
  SessionOptions,
  SessionStats,
} from './json_fields';
import { KeptRuns } from './kept_runs';
import { KernelService } from './kernel_service';
import { OutputMemory } from './output_memory';
import { pageStats, sessionStats } from './stats';

/** By type, strings of the object API may be bytes; ours never are. */
type Text = string | Uint8Array | null;
const text = (value: Text): string => (typeof value === 'string' ? value : '');
const json = <T>(value: Text): T => (value ? JSON.parse(text(value)) : {}) as T;
/** Information for Python, as JSON. */
const told = (info: SessionInfo | RunInfo | GenerateInfo | PageStats | SessionStats): string => JSON.stringify(info);
const ACK: Answer = { type: Body.Ack, body: new AckT() };

/** A generation that waits for logits. */
interface Choosing {
  readonly resolve: (logits: ArrayLike<number>) => void;
  readonly reject: (error: unknown) => void;
}

export class Requests {
  private readonly kernelService: KernelService;
  private readonly sessions = new Map<number, Session>();
  private readonly outputs = new OutputMemory();
  private readonly keptRuns = new KeptRuns();
  private readonly underWay = new Map<number, AbortController>();
  private readonly choosing = new Map<number, Choosing>();
  private nextSession = 1;

  constructor(
    private readonly connection: Connection,
    private readonly runtime: Runtime,
  ) {
    this.kernelService = new KernelService(runtime);
    runtime.log = (severity, category, line) => connection.log(severity, category, line);
  }

  /** Answers a message when the answer is ready. */
  async handle({ id, type, body, payload }: ReceivedMessage): Promise<void> {
    const abort = new AbortController();
    this.underWay.set(id, abort);
    try {
      const answer = await this.answer(id, type, body, payload, abort.signal);
      this.connection.send(id, answer);
      answer.sent?.();
    } catch (error) {
      this.connection.sendError(id, error);
    } finally {
      this.underWay.delete(id);
      this.choosing.delete(id);
    }
  }

  private answer(
    id: number,
    type: Body,
    body: unknown,
    payload: Uint8Array,
    signal: AbortSignal,
  ): Promise<Answer> | Answer {
    switch (type) {
      case Body.OpenDevice:
        return this.openDevice(body as OpenDeviceT);
      case Body.AskDevice:
        return this.askDevice(body as AskDeviceT, payload);
      case Body.CreateSession:
        return this.createSession(id, body as CreateSessionT, payload, signal);
      case Body.ReleaseSession:
        return this.releaseSession(body as ReleaseSessionT);
      case Body.Run:
        return this.run(id, body as RunT, payload, signal);
      case Body.Generate:
        return this.generate(id, body as GenerateT, payload, signal);
      case Body.ChosenLogits:
        return this.chosenLogits(body as ChosenLogitsT, payload);
      case Body.ReleaseGraph:
        return this.releaseGraph(body as ReleaseGraphT);
      case Body.Cancel:
        return this.cancel(body as CancelT);
      case Body.GetStats:
        return this.stats(body as GetStatsT);
      case Body.Ping:
        return {
          type: Body.Pong,
          body: new PongT(performance.now(), [...this.underWay.keys(), ...this.connection.fetching]),
        };
      case Body.JsepAlloc:
        return this.jsepAlloc(body as JsepAllocT);
      case Body.JsepFree:
        return this.jsepFree(body as JsepFreeT);
      case Body.JsepCopy:
        return this.jsepCopy(body as JsepCopyT, payload);
      case Body.JsepCopyAsync:
        return this.jsepCopyAsync(body as JsepCopyAsyncT);
      case Body.JsepCreateKernel:
        return this.jsepCreateKernel(body as JsepCreateKernelT);
      case Body.JsepReleaseKernel:
        return this.jsepReleaseKernel(body as JsepReleaseKernelT);
      case Body.JsepRun:
        return this.jsepRun(body as JsepRunT, payload);
      default:
        throw new RuntimeError(
          ErrorCode.not_implemented,
          `this page does not answer ${Body[type] ?? `message type ${type}`}`,
        );
    }
  }

  private async openDevice({ provider: name, deviceId, options }: OpenDeviceT): Promise<Answer> {
    const { given, ...opening } = json<DeviceOptions>(options);
    const provider = providerNamed(text(name));
    const devices = this.runtime.devices(provider.name);
    const { description } = await devices.open(deviceId, { ...provider.settings(given).device, ...opening });
    return { type: Body.DeviceOpened, body: new DeviceOpenedT(JSON.stringify(description)) };
  }

  private async askDevice({ provider, deviceId, calls }: AskDeviceT, payload: Uint8Array): Promise<Answer> {
    const refusals = await this.kernelService.refusals(text(provider), deviceId, calls, payload);
    return { type: Body.DeviceAnswer, body: new DeviceAnswerT(refusals) };
  }

  private async createSession(
    request: number,
    { plan, weights, options }: CreateSessionT,
    payload: Uint8Array,
    signal: AbortSignal,
  ): Promise<Answer> {
    const session = await Session.load(ofUrls(text(plan) || payload.slice(), text(weights), signal), {
      ...json<SessionOptions>(options),
      runtime: this.runtime,
      signal,
      onProgress: (stage, done, total) => this.connection.progress(request, stage, done, total),
    });
    const id = this.nextSession++;
    this.sessions.set(id, session);
    return { type: Body.SessionCreated, body: new SessionCreatedT(id, told(session.info)) };
  }

  private session(id: number): Session {
    const session = this.sessions.get(id);
    if (!session) throw new RuntimeError(ErrorCode.no_such_session, `this page has no session ${id}`);
    return session;
  }

  private async releaseSession({ session }: ReleaseSessionT): Promise<Answer> {
    const released = this.session(session);
    this.sessions.delete(session);
    this.keptRuns.drop(session);
    await released.release();
    return ACK;
  }

  private async run(request: number, run: RunT, payload: Uint8Array, signal: AbortSignal): Promise<Answer> {
    const memory = this.outputs.borrow();
    const received_ms = performance.now();
    const session = this.session(run.session);
    const { feeds, outputs, outputsOnGpu, options } = this.keptRuns.read(run, payload);
    const onProgress = (stage: string, done: number, total: number) =>
      this.connection.progress(request, stage, done, total);
    const result = await session.run(feeds, {
      ...options,
      outputs,
      outputsOnGpu,
      signal,
      onProgress,
      copy: memory.copy,
    });
    const writer = new TensorWriter();
    // Python already has bound outputs.
    for (const [name, value] of Object.entries(result.outputs)) if (!named(options.bind, name)) writer.add(name, value);
    const info = result.info.timeline ? { ...result.info, received_ms, answered_ms: performance.now() } : result.info;
    const answer = new RunResultT(writer.descriptions, told(info));
    return { type: Body.RunResult, body: answer, payload: writer.payload, sent: memory.giveBack };
  }

  private async generate(
    request: number,
    { session, prompts, options, filters }: GenerateT,
    payload: Uint8Array,
    signal: AbortSignal,
  ): Promise<Answer> {
    const rows = prompts.map((prompt) => toNumbers(prompt.dtype, readBytes(prompt, payload)));
    const generator = await generatorOf(this.session(session));
    const info = await generator.generate(
      rows,
      json<GenerateOptions>(options),
      (tokens) => this.connection.tokens(request, tokens),
      signal,
      filters ? this.changedInPython(request) : undefined,
    );
    return { type: Body.Generated, body: new GeneratedT(told(info)) };
  }

  /** Sends logits to Python, and waits for those that come back. */
  private changedInPython(request: number): OnLogits {
    return (logits, tokens, row) =>
      new Promise((resolve, reject) => {
        this.choosing.set(request, { resolve, reject });
        const writer = new TensorWriter();
        const data = new Uint8Array(logits.buffer);
        writer.add('', { dtype: DType.float32, dims: [logits.length], data });
        const body = new LogitsT(request, row, [...tokens], writer.descriptions[0]);
        this.connection.send(0, { type: Body.Logits, body, payload: writer.payload });
      });
  }

  private chosenLogits({ request, logits, error }: ChosenLogitsT, payload: Uint8Array): Answer {
    const waiting = this.choosing.get(request);
    if (logits) waiting?.resolve(toNumbers(DType.float32, readBytes(logits, payload)));
    else waiting?.reject(new RuntimeError(ErrorCode.fail, text(error)));
    return ACK;
  }

  private async releaseGraph({ session, graphId }: ReleaseGraphT): Promise<Answer> {
    await this.session(session).releaseGraph(graphId);
    return ACK;
  }

  private cancel({ request }: CancelT): Answer {
    this.underWay.get(request)?.abort();
    return ACK;
  }

  private async stats({ session }: GetStatsT): Promise<Answer> {
    const stats = session === 0 ? await pageStats(this.runtime, this.sessions) : sessionStats(this.session(session));
    return { type: Body.Stats, body: new StatsT(told(stats)) };
  }

  private async jsepAlloc({ provider, deviceId, size }: JsepAllocT): Promise<Answer> {
    const id = await this.kernelService.alloc(text(provider), deviceId, Number(size));
    return { type: Body.JsepBuffer, body: new JsepBufferT(id) };
  }

  private async jsepFree({ id, others }: JsepFreeT): Promise<Answer> {
    const freed = await Promise.allSettled([id, ...others].map((one) => this.kernelService.free(one)));
    for (const one of freed) if (one.status === 'rejected') throw one.reason;
    return ACK;
  }

  private async jsepCopy({ src, dst, size }: JsepCopyT, payload: Uint8Array): Promise<Answer> {
    if (src === 0) await this.kernelService.upload(dst, payload);
    else await this.kernelService.copy(src, dst, Number(size));
    return ACK;
  }

  private async jsepCopyAsync({ src, size }: JsepCopyAsyncT): Promise<Answer> {
    const bytes = await this.kernelService.download(src, Number(size));
    return { type: Body.JsepBytes, body: new JsepBytesT(BigInt(bytes.byteLength)), payload: [bytes] };
  }

  private async jsepCreateKernel({
    provider,
    deviceId,
    opType,
    domain,
    attributes,
    userKernel,
  }: JsepCreateKernelT): Promise<Answer> {
    const id = await this.kernelService.createKernel(
      text(provider),
      deviceId,
      text(opType),
      text(domain),
      Uint8Array.from(attributes),
      text(userKernel),
    );
    return { type: Body.JsepKernel, body: new JsepKernelT(id) };
  }

  private jsepReleaseKernel({ id }: JsepReleaseKernelT): Answer {
    this.kernelService.releaseKernel(id);
    return ACK;
  }

  private async jsepRun({ kernel, inputs, outputs }: JsepRunT, payload: Uint8Array): Promise<Answer> {
    const start = performance.now();
    const { tensors, counters } = await this.kernelService.run(kernel, inputs, payload, outputs);
    const writer = new TensorWriter();
    tensors.forEach((tensor, i) => writer.add(String(i), tensor));
    const info = { run_ms: performance.now() - start, replayed: false, segments: 1, counters };
    return { type: Body.RunResult, body: new RunResultT(writer.descriptions, told(info)) };
  }
}
