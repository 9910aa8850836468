// The interface between a session of the API and the thread where its model runs: this one, or a worker. Messages to a
// worker can be cloned.
import type { ProviderOptions } from '../device/options';
import type { Simd } from '../core/files';
import type { NodeArgEntry } from '../package/header';
import type { ModelFile } from '../package/model_kinds';
import type { SessionInfo } from '../session/state';
import type { GenerateInfo, GenerateOptions, OnLogits } from '../generate/generate_options';
import type { OnTokens } from '../generate/loop';
import type { RunOptions, RunResult } from '../session/run_options';
import type { Feeds } from '../session/feeds';
import type { ExecutionProvider, ExternalFile } from './providers';
import type { TensorKeeper } from '../device/keeper';
import type { RuntimeFiles } from './runtime_files';

/** The places of the runtime's files, and its start options. The first session decides. */
export interface RuntimeSettings {
  readonly files: RuntimeFiles;
  readonly wasmBinary?: Uint8Array;
  readonly initTimeout?: number;
  /** For nodes on the CPU, if the CPU is the first provider: the files to fetch at once. */
  readonly likely?: Simd | 'auto';
  /** True if sessions may have threads; the core's memory is then shared where possible. */
  readonly threads: boolean;
}

export interface EngineRequest {
  readonly model: ModelFile;
  readonly externalData?: readonly ExternalFile[];
  /** Best first; empty if the user names none. */
  readonly executionProviders: readonly ExecutionProvider[];
  /** Options of providers; the entries in the list above add to them. */
  readonly providerOptions: ProviderOptions;
  readonly threads: number;
  readonly trace: boolean;
  readonly freeDimensions: { readonly [name: string]: number };
  readonly cache: boolean;
  readonly runtime: RuntimeSettings;
}

export interface EngineDescription {
  /** Set if the engine is not py_ort. */
  readonly engine?: 'fallback';
  readonly inputs: readonly NodeArgEntry[];
  readonly outputs: readonly NodeArgEntry[];
  /** The number of the file's plan that it runs. */
  readonly plan: number;
  /** The providers that run its nodes, best first. */
  readonly providers: readonly string[];
  readonly info: SessionInfo;
}

export type EngineRunOptions = Pick<
  RunOptions,
  'outputs' | 'outputsOnGpu' | 'bind' | 'graphId' | 'profile' | 'signal' | 'abortable'
>;

export interface Engine {
  /** The request for which it was made; another engine's has none. */
  readonly request?: EngineRequest;
  readonly description: EngineDescription;
  /** The thread where it runs: see TensorKeeper. */
  readonly thread: object;
  /** The owner of outputs left on the device; undefined without a device. */
  readonly keeper: TensorKeeper | undefined;
  /** True if nodes on the GPU read this input; never called for a worker's engine. */
  readsOnGpu?(input: string): boolean;
  run(feeds: Feeds, options: EngineRunOptions): Promise<RunResult>;
  /** Generates tokens for each prompt; see generate/generator.ts. */
  generate(
    prompts: readonly (readonly number[])[],
    options: GenerateOptions,
    onTokens: OnTokens,
    signal: AbortSignal,
    onLogits?: OnLogits,
  ): Promise<GenerateInfo>;
  release(): Promise<void>;
}

/** Receives events while a session is made and used. */
export interface Listener {
  readonly log: (severity: number, category: string, text: string) => void;
  readonly onProgress?: (stage: string, done: number, total: number) => void;
  readonly onTokens?: OnTokens;
  readonly onLogits?: OnLogits;
  readonly signal?: AbortSignal;
}
