// What a session of the API needs of the thread where its model runs: this one, or a worker's. What goes to a worker
// can be cloned.
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

/** Where the runtime's files are, and what it starts with. The first session decides. */
export interface RuntimeSettings {
  readonly files: RuntimeFiles;
  readonly wasmBinary?: Uint8Array;
  readonly initTimeout?: number;
  /** Of nodes on the CPU, where these come first: the files that are fetched at once. */
  readonly likely?: Simd | 'auto';
  /** Whether sessions may have threads, and the core's memory is one that several share where there is such. */
  readonly threads: boolean;
}

export interface EngineRequest {
  readonly model: ModelFile;
  readonly externalData?: readonly ExternalFile[];
  /** Best first; empty where the user names none. */
  readonly executionProviders: readonly ExecutionProvider[];
  /** What providers' own entries in the list above add to. */
  readonly providerOptions: ProviderOptions;
  readonly threads: number;
  readonly trace: boolean;
  readonly freeDimensions: { readonly [name: string]: number };
  readonly cache: boolean;
  readonly runtime: RuntimeSettings;
}

export interface EngineDescription {
  /** Named if it is another one than py_ort. */
  readonly engine?: 'fallback';
  readonly inputs: readonly NodeArgEntry[];
  readonly outputs: readonly NodeArgEntry[];
  /** The number of the file's plan that it runs. */
  readonly plan: number;
  /** Those that run its nodes, best first. */
  readonly providers: readonly string[];
  readonly info: SessionInfo;
}

export type EngineRunOptions = Pick<RunOptions, 'outputs' | 'outputsOnGpu' | 'bind' | 'graphId' | 'profile' | 'signal'>;

export interface Engine {
  /** What it was made for; another engine's has none. */
  readonly request?: EngineRequest;
  readonly description: EngineDescription;
  /** Where it runs: see TensorKeeper. */
  readonly thread: object;
  /** Of outputs left on the device; undefined where there is none. */
  readonly keeper: TensorKeeper | undefined;
  /** Whether nodes on the GPU read this input; not asked of a worker's. */
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

/** Told what happens while a session is made and used. */
export interface Listener {
  readonly log: (severity: number, category: string, text: string) => void;
  readonly onProgress?: (stage: string, done: number, total: number) => void;
  readonly onTokens?: OnTokens;
  readonly onLogits?: OnLogits;
  readonly signal?: AbortSignal;
}
