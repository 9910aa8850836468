// A model that another engine with onnxruntime-web's API runs: the engine of `env.fallback`.
import { type DType, ErrorCode } from '../schema';
import { describe, invalid, messageOf, RuntimeError } from '../errors';
import { newCounters } from '../device/counters';
import type { TensorKeeper } from '../device/keeper';
import type { GenerateInfo } from '../generate/generate_options';
import type { NodeArgEntry } from '../package/header';
import { checkOutputNames, type Feeds } from '../session/feeds';
import type { RunInfo, RunResult } from '../session/run_options';
import { unlessAborted } from '../turn';
import { isContainer, isOnGpu, type Value } from '../wire/values';
import { dtypeOfType, fromBytes, toBytes, typeOfDtype } from './elements';
import type { Engine, EngineDescription, EngineRunOptions } from './engine';
import { nameOf } from './providers';
import type { InferenceSessionOptions } from './session_options';
import type { TensorData, TensorType } from './tensor_types';

interface PeerTensor {
  readonly type: TensorType;
  readonly dims: readonly number[];
  readonly location: string;
  readonly data: TensorData;
  readonly gpuBuffer: GPUBuffer;
  getData(): Promise<TensorData>;
  dispose(): void;
}

interface PeerMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  readonly type?: TensorType;
  readonly shape?: readonly (number | string)[];
}

type PeerValues = { readonly [name: string]: PeerTensor | null };

interface PeerSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata?: readonly PeerMetadata[];
  readonly outputMetadata?: readonly PeerMetadata[];
  run(feeds: PeerValues, fetches: PeerValues): Promise<{ readonly [name: string]: PeerTensor }>;
  release(): Promise<void>;
}

/** The part of onnxruntime-web's API that is used here. */
interface Peer {
  readonly env?: { readonly versions?: { readonly py_ort?: string } };
  readonly InferenceSession: { create(model: string | Uint8Array, options: object): Promise<PeerSession> };
  readonly Tensor: {
    new (type: TensorType, data: TensorData, dims: readonly number[]): PeerTensor;
    fromGpuBuffer(buffer: GPUBuffer, options: { dataType: TensorType; dims: readonly number[] }): PeerTensor;
  };
}

/** For all sessions of other engines: tensors that they left on the GPU, and tensors lent to a run. */
const onGpu = new Map<number, PeerTensor>();
let last = 0;
const note = (tensor: PeerTensor): number => {
  onGpu.set(++last, tensor);
  return last;
};

/** Throws the error of ours for one of the other engine. */
function failed(error: unknown): never {
  throw new RuntimeError(ErrorCode.fail, `the engine of env.fallback: ${messageOf(error)}`, {}, { cause: error });
}

/** The engine runs one thing at a time. */
let busy: Promise<unknown> = Promise.resolve();
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = busy.then(work);
  busy = done.catch(() => undefined);
  return done;
}

const keeperOf = (peer: Peer): TensorKeeper => ({
  thread: onGpu,
  location: 'gpu-buffer',
  download: async (gpuId) => toBytes(await onGpu.get(gpuId)!.getData()),
  free(gpuId) {
    onGpu.get(gpuId)?.dispose();
    onGpu.delete(gpuId);
  },
  resource: (gpuId) => onGpu.get(gpuId)!.gpuBuffer,
  lend(resource, dtype, dims) {
    const gpuId = note(peer.Tensor.fromGpuBuffer(resource as GPUBuffer, { dataType: typeOfDtype(dtype), dims }));
    return { gpuId, giveBack: () => void onGpu.delete(gpuId) };
  },
});

/** Marks options that went to the engine: with them, a `create` of its own would wait for itself. */
const OF_FALLBACK = Symbol('py_ort: options of env.fallback');

/** The options that onnxruntime-web knows: it does not know those of py_ort. */
function optionsFor({ cache, onProgress, signal, ...options }: InferenceSessionOptions): object {
  return { ...options, [OF_FALLBACK]: true };
}

/** Types in ONNX's words. */
const WORDS: { readonly [type: string]: string } = { float32: 'float', float64: 'double' };

function entriesOf(names: readonly string[], metadata: readonly PeerMetadata[] | undefined): NodeArgEntry[] {
  return names.map((name, i) => {
    const { isTensor = false, type = '', shape } = metadata?.[i] ?? {};
    return { name, type: isTensor ? `tensor(${WORDS[type] ?? type})` : '', dims: shape ?? null, keys: null };
  });
}

/** @throws RuntimeError unless the engine gave a session. */
function checkedSession(given: PeerSession | undefined): PeerSession {
  const { inputNames, outputNames, run } = given ?? ({} as Partial<PeerSession>);
  if (Array.isArray(inputNames) && Array.isArray(outputNames) && typeof run === 'function') return given!;
  const text = `create gave ${describe(given)}, and not a session with inputNames, outputNames and run`;
  throw new RuntimeError(ErrorCode.fail, text);
}

export class FallbackEngine implements Engine {
  readonly thread = onGpu;
  private released: Promise<void> | undefined;
  readonly keeper: TensorKeeper;

  private constructor(
    private readonly peer: Peer,
    private readonly session: PeerSession,
    readonly description: EngineDescription,
  ) {
    this.keeper = keeperOf(peer);
  }

  /** @param load returns the engine's module. @param model a URL, or the bytes of an ONNX file. */
  static async create(
    load: () => unknown,
    model: string | Uint8Array,
    options: InferenceSessionOptions,
  ): Promise<FallbackEngine> {
    const module = (await load()) as (Peer & { readonly default?: Peer }) | null | undefined;
    const peer = module?.InferenceSession ? module : module?.default;
    if (typeof peer?.InferenceSession?.create !== 'function' || !peer.Tensor)
      throw invalid("env.fallback gives no module with onnxruntime-web's API: InferenceSession and Tensor");
    if (peer.env?.versions?.py_ort)
      throw invalid(
        'env.fallback gives py_ort itself, because an import map or an alias of the bundler names it ' +
          'onnxruntime-web: import the other engine by the URL of its file, or by a name without an alias',
      );
    if (OF_FALLBACK in options)
      throw invalid(
        "env.fallback gives an InferenceSession whose create calls py_ort's own create for the same model: " +
          'call that of the other engine, or that of py_ort for an exported model',
      );
    const started = performance.now();
    const { signal } = options;
    const given = await inTurn(async () => {
      signal?.throwIfAborted();
      const creating = Promise.resolve(peer.InferenceSession.create(model, optionsFor(options)));
      // It may never end: models after it do not wait longer than its caller.
      return unlessAborted(creating, signal, (late) => inTurn(() => late.release()));
    });
    const create_ms = performance.now() - started;
    const session = checkedSession(given);
    return new FallbackEngine(peer, session, {
      engine: 'fallback',
      plan: -1,
      inputs: entriesOf(session.inputNames, session.inputMetadata),
      outputs: entriesOf(session.outputNames, session.outputMetadata),
      providers: (options.executionProviders ?? []).map(nameOf),
      info: {
        ...{ create_ms, weights_ms: 0, compile_ms: 0, counters: newCounters() },
        ...{ wasm: { threads: 0 }, timeline: [] },
      },
    });
  }

  async run(feeds: Feeds, { outputs, bind = {}, signal }: EngineRunOptions): Promise<RunResult> {
    const given = Object.fromEntries(
      Object.entries(feeds).map(([name, value]) => [name, this.peerTensor(name, value)]),
    );
    const names = outputs ?? this.session.outputNames;
    checkOutputNames(this.session.outputNames, names);
    const fetches = Object.fromEntries(
      names.map((name) => [name, Object.hasOwn(bind, name) ? onGpu.get(bind[name].gpuId)! : null]),
    );
    const started = performance.now();
    const found = await inTurn(async () => {
      signal?.throwIfAborted();
      return this.session.run(given, fetches);
    }).catch((error: unknown) => {
      signal?.throwIfAborted();
      return failed(error);
    });
    const info: RunInfo = {
      ...{ run_ms: performance.now() - started, compile_ms: 0, replayed: false, segments: 0 },
      counters: newCounters(),
    };
    return { outputs: Object.fromEntries(names.map((name) => [name, fromPeer(name, found)])), info };
  }

  generate(): Promise<GenerateInfo> {
    const text = 'generate is for exported models, and another engine runs this one: `py-ort export MODEL` exports it';
    return Promise.reject(new RuntimeError(ErrorCode.not_implemented, text));
  }

  async release(): Promise<void> {
    this.released ??= inTurn(() => this.session.release()).catch(failed);
    await this.released;
  }

  private peerTensor(name: string, value: Value): PeerTensor {
    if (isContainer(value)) {
      const text = `input "${name}" is a sequence or an optional, which the engine of env.fallback does not take`;
      throw new RuntimeError(ErrorCode.not_implemented, text);
    }
    if (isOnGpu(value)) return onGpu.get(value.gpuId)!;
    const type = typeOfDtype(value.dtype);
    try {
      return new this.peer.Tensor(type, fromBytes(type, value.data), value.dims);
    } catch (error) {
      throw new RuntimeError(ErrorCode.invalid_argument, `input "${name}": ${messageOf(error)}`, {}, { cause: error });
    }
  }
}

function fromPeer(name: string, outputs: { readonly [name: string]: PeerTensor } | undefined): Value {
  const tensor = outputs?.[name];
  if (typeof tensor?.type !== 'string') {
    const gave = outputs ? `${describe(tensor)} for the output "${name}"` : describe(outputs);
    failed(`run gave ${gave}, and not a tensor`);
  }
  const { type, dims, location } = tensor;
  const dtype: DType = dtypeOfType(type);
  return location === 'gpu-buffer' ? { dtype, dims, gpuId: note(tensor) } : { dtype, dims, data: toBytes(tensor.data) };
}
