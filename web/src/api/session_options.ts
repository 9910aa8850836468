// Options of sessions and runs, by onnxruntime-web's names: those with an effect here, those without, and unknown ones.
import { providers, sides } from 'virtual:build';
import { ErrorCode } from '../schema';
import { CORE_PROVIDER } from '../contract/providers';
import { invalid, RuntimeError } from '../errors';
import { host } from '../host';
import { type ModelFile, noModel } from '../package/model_kinds';
import type { DeviceLocation } from '../device/keeper';
import { type GivenOptions, withoutEffect } from '../device/options';
import { checkFunction, checkSignal } from './caller';
import { env, ownDevice, severityOf, tracing } from './env';
import type { LogLevel } from './env_types';
import type { EngineRequest, RuntimeSettings } from './engine';
import { type ExecutionProvider, type ExternalDataFileType, hasDevice, nameOf, type PageDevice } from './providers';
import { runtimeFiles } from './runtime_files';
import { named } from '../wire/values';

export type OutputLocation = 'cpu' | DeviceLocation;
/** onnxruntime-web's name. */
export type OnnxValueDataLocation = OutputLocation;

export interface InferenceSessionOptions {
  /** Best first. A missing provider is skipped, with a warning. Default: wasm. */
  readonly executionProviders?: readonly ExecutionProvider[];
  /** The location of all outputs, or of each by name. Default: the CPU. */
  readonly preferredOutputLocation?: OutputLocation | { readonly [name: string]: OutputLocation };
  /** Selects the plan exported for these sizes, if there is one. */
  readonly freeDimensionOverrides?: { readonly [name: string]: number };
  /** Threads that share the work of a node; default: `env.wasm.numThreads`. */
  readonly intraOpNumThreads?: number;
  /** Record the dispatches of a run, and replay them in the next. */
  readonly enableGraphCapture?: boolean;
  /** Call `startProfiling` at once. */
  readonly enableProfiling?: boolean;
  /** Prefix of its messages on the console. */
  readonly logId?: string;
  /** The least severe of its messages shown on the console, from 0 (all) to 4; default: by `env.logLevel`. */
  readonly logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  /** Further files of a model in parts, if they are not next to its URL: a string is both path and URL. */
  readonly externalData?: readonly ExternalDataFileType[];
  /**
   * Keep the model in the browser's cache, under its URL: it is then fetched once. Default: false, and true for exports
   * of `env.compiler`, which are kept until their models change.
   */
  readonly cache?: boolean;
  /**
   * Called with the progress of downloads and of compiled shaders. If it throws, `create` rejects with the error, and
   * no further progress is reported.
   */
  readonly onProgress?: (stage: string, done: number, total: number) => void;
  /**
   * Ends the loading: closes its connections and releases everything. `create` rejects with `signal.reason`: an
   * AbortError if `abort` was called without one.
   */
  readonly signal?: AbortSignal;
  /** Has no effect: the model was optimized when it was exported. */
  readonly graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
  /** Has no effect: nodes run one after the other. */
  readonly interOpNumThreads?: number;
  /** Has no effect: tensors on the CPU always use an arena. */
  readonly enableCpuMemArena?: boolean;
  /** Has no effect: memory on the GPU is always planned. */
  readonly enableMemPattern?: boolean;
  /** Has no effect: nodes run one after the other. */
  readonly executionMode?: 'sequential' | 'parallel';
  /** Has no effect: pages write no files. */
  readonly optimizedModelFilePath?: string;
  /** Has no effect: `endProfiling` returns the profile. */
  readonly profileFilePrefix?: string;
  /** Has no effect. */
  readonly logVerbosityLevel?: number;
  /** Has no effect: configuration entries are options of `py-ort export`, or of WebGPU. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface InferenceRunOptions {
  /**
   * Ends the run, which rejects at once with `signal.reason`: an AbortError if `abort` was called without one. A run
   * that waits for others never begins; one under way ends at its next node. The session remains valid.
   */
  readonly signal?: AbortSignal;
  /** With enableGraphCapture: the capture of this run, a number from 0, or -1: none. Default: by input shapes. */
  readonly graphId?: number;
  /** Has no effect: messages follow the session's options. */
  readonly logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  /** Has no effect. */
  readonly logVerbosityLevel?: number;
  /** true: the run does not begin. `signal` ends a run that has begun. */
  readonly terminate?: boolean;
  /** Has no effect. */
  readonly tag?: string;
  /** Has no effect. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

type Known<T> = { readonly [key in keyof Required<T>]: 'used' | readonly unknown[] };

/** Known options. For an option without an effect, the values that request the existing behavior. */
const SESSION_OPTIONS: Known<InferenceSessionOptions> = {
  executionProviders: 'used',
  preferredOutputLocation: 'used',
  freeDimensionOverrides: 'used',
  intraOpNumThreads: 'used',
  enableGraphCapture: 'used',
  enableProfiling: 'used',
  logId: 'used',
  logSeverityLevel: 'used',
  externalData: 'used',
  cache: 'used',
  onProgress: 'used',
  signal: 'used',
  graphOptimizationLevel: ['all'],
  interOpNumThreads: [0, 1],
  enableCpuMemArena: [true],
  enableMemPattern: [true],
  executionMode: ['sequential'],
  optimizedModelFilePath: [],
  profileFilePrefix: [],
  logVerbosityLevel: [0],
  extra: [],
};
const RUN_OPTIONS: Known<InferenceRunOptions> = {
  signal: 'used',
  graphId: 'used',
  logSeverityLevel: [],
  logVerbosityLevel: [0],
  terminate: 'used',
  tag: [],
  extra: [],
};

/** Checks for errors that JavaScript allows. */
export function checkedOptions(options: InferenceSessionOptions): InferenceSessionOptions {
  if (typeof options !== 'object' || options === null) throw invalid('options of a session are an object');
  const { executionProviders, graphOptimizationLevel: level, executionMode: mode } = options;
  if (executionProviders !== undefined && !Array.isArray(executionProviders))
    throw invalid(
      `executionProviders is an array, such as ['${providers.join("', '")}'], not ${String(executionProviders)}`,
    );
  for (const each of executionProviders ?? []) {
    const name: unknown = typeof each === 'object' ? (each as { name?: unknown } | null)?.name : each;
    if (typeof name !== 'string') throw invalid(`an execution provider is a name, or { name, … }, not ${String(each)}`);
  }
  checkSignal(options.signal);
  checkFunction('onProgress', options.onProgress);
  checkOneOf('graphOptimizationLevel', level, ['disabled', 'basic', 'extended', 'layout', 'all']);
  checkOneOf('executionMode', mode, ['sequential', 'parallel']);
  return options;
}

function checkOneOf(what: string, value: string | undefined, known: readonly string[]): void {
  if (value !== undefined && !known.includes(value))
    throw invalid(`${what} is one of ${known.join(', ')}, not "${value}"`);
}

/** Returns the names of options without an effect; throws for unknown ones. */
function ignored<T extends object>(what: string, known: Known<T>, given: T): string[] {
  const names = Object.keys(known);
  return Object.entries(given)
    .filter(([name, value]) => {
      const use = named<'used' | readonly unknown[]>(known, name);
      if (use === undefined) throw invalid(`${what} has no option "${name}"; it has ${names.join(', ')}`);
      return value !== undefined && value !== null && use !== 'used' && !use.includes(value);
    })
    .map(([name]) => name);
}

/** The options of its providers included, each once. */
export function sessionOptionsWithoutEffect(given: InferenceSessionOptions): string[] {
  const entries = (given.executionProviders ?? []).filter((each) => typeof each === 'object');
  const ofProviders = entries.flatMap((each) => withoutEffect(nameOf(each), each).map((key) => `${each.name}.${key}`));
  return [...ignored('InferenceSession.create', SESSION_OPTIONS, given), ...new Set(ofProviders)];
}

export const isRunOption = (name: string) => Object.hasOwn(RUN_OPTIONS, name);

export const runOptionsWithoutEffect = (given: InferenceRunOptions) => ignored('run', RUN_OPTIONS, given);

/** The least severity of a session's messages that are shown. */
export function severityFor({ logSeverityLevel }: InferenceSessionOptions): number {
  if (logSeverityLevel === undefined) return severityOf(env.logLevel as LogLevel | undefined);
  if (![0, 1, 2, 3, 4].includes(logSeverityLevel)) throw invalid(`logSeverityLevel is 0 to 4, not ${logSeverityLevel}`);
  return logSeverityLevel;
}

/** The runtime's files, by `env.wasm`. */
function runtimeSettings(likely: RuntimeSettings['likely'], threads: boolean): RuntimeSettings {
  const { wasmPaths, wasmBinary, initTimeout } = env.wasm;
  const binary = wasmBinary && (wasmBinary instanceof Uint8Array ? wasmBinary : new Uint8Array(wasmBinary));
  return { files: runtimeFiles(wasmPaths), wasmBinary: binary, initTimeout, likely, threads };
}

/**
 * A file in a form that a worker can find, since its base for relative URLs differs. Bytes are a blob, which threads
 * share, for as long as a session may have to be made again.
 */
function located(file: ModelFile): string | Blob {
  if (typeof file === 'string' || file instanceof URL) {
    try {
      return host.resolve(String(file));
    } catch {
      throw invalid(`"${String(file)}" is no URL`);
    }
  }
  if (file instanceof Blob) return file;
  if (!(file instanceof ArrayBuffer || file instanceof Uint8Array)) throw noModel(file);
  const isShared = file instanceof Uint8Array && !(file.buffer instanceof ArrayBuffer);
  return new Blob([isShared ? file.slice() : (file as BlobPart)]);
}

/** The request for an engine. */
export function engineRequest(
  model: EngineRequest['model'],
  options: InferenceSessionOptions,
  device: PageDevice | undefined,
  deviceId: (device: object) => number,
): EngineRequest {
  const { executionProviders = [], externalData, cache = false, freeDimensionOverrides = {} } = options;
  const { simd = true, numThreads = 0 } = env.wasm;
  if (simd === false)
    throw new RuntimeError(ErrorCode.not_implemented, 'env.wasm.simd = false: py_ort has no build without SIMD');
  const { enableGraphCapture } = options;
  const optionsOf = (name: string): GivenOptions => {
    const given = device?.provider === name;
    return {
      ...sideOf(name)?.optionsOf(env[name] as object | undefined, given),
      ...(given && { deviceId: deviceId(device.source) }),
      ...(enableGraphCapture === undefined ? {} : { enableGraphCapture }),
    };
  };
  const wasm = { simd: simd === true ? ('auto' as const) : simd };
  const threads = options.intraOpNumThreads ?? numThreads;
  const [first] = executionProviders;
  const onDevice = first !== undefined && sideOf(nameOf(first))?.isHere();
  return {
    model: located(model),
    executionProviders: executionProviders.map(withoutObjects),
    externalData: externalData?.map((file) =>
      typeof file === 'string' ? { path: file, data: located(file) } : { path: file.path, data: located(file.data) },
    ),
    providerOptions: {
      [CORE_PROVIDER]: wasm,
      ...Object.fromEntries(providers.filter(hasDevice).map((name) => [name, optionsOf(name)])),
    },
    threads,
    trace: tracing(),
    freeDimensions: freeDimensionOverrides,
    cache,
    runtime: runtimeSettings(onDevice ? undefined : wasm.simd, numThreads !== 1 || threads !== 1),
  };
}

const sideOf = (name: string) => (Object.hasOwn(sides, name) ? sides[name] : undefined);

/** True if a provider that is named has a device in the page's own thread only. */
export const needsPage = ({ executionProviders }: InferenceSessionOptions) =>
  executionProviders?.some((each) => sideOf(nameOf(each))?.needsPage?.());

/** An entry as a worker can be given it: with options only, and those of providers that are here. */
function withoutObjects(provider: ExecutionProvider): ExecutionProvider {
  if (typeof provider === 'string') return provider;
  const { name } = provider;
  if (!providers.includes(nameOf(provider))) return { name };
  const objects = sideOf(name)?.objects ?? [];
  return { name, ...Object.fromEntries(Object.entries(provider).filter(([key]) => !objects.includes(key))) };
}

/** The page's own device, adapter or context: passed with a provider, or by `env`. */
export function deviceOfPage({ executionProviders = [] }: InferenceSessionOptions): PageDevice | undefined {
  const entries = executionProviders.filter((each) => typeof each === 'object');
  const ofEnv = { device: ownDevice(), adapter: env.webgpu.adapter };
  const given = [
    ...entries.map((each) => [each.name, { ...each }] as const),
    ...Object.keys(sides).map((name) => [name, ofEnv] as const),
  ];
  for (const [provider, members] of given) {
    const source = sideOf(provider)?.sourceOf(members);
    if (source) return { provider, source };
  }
  return undefined;
}
