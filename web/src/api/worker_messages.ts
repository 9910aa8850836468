// Messages between the page and the worker of its sessions.
import type { CompiledCore } from '../core/files';
import type { DType, ErrorCode } from '../schema';
import type { ErrorPlace } from '../errors';
import type { GenerateOptions, OnLogits } from '../generate/generate_options';
import type { Feeds } from '../session/feeds';
import type { EngineRequest, EngineRunOptions } from './engine';

/** Each has its own number; that of `create` is then the session's. */
export type Question = {
  readonly id: number;
} /** Before the first session: the core's files that the page has compiled; undefined: the worker compiles them. */ & (
  | { readonly ask: 'compiled'; readonly core: CompiledCore | undefined }
  | { readonly ask: 'create'; readonly request: EngineRequest }
  | {
      readonly ask: 'run';
      readonly session: number;
      readonly feeds: Feeds;
      readonly options: Omit<EngineRunOptions, 'signal'>;
    }
  | {
      readonly ask: 'download';
      readonly session: number;
      readonly gpuId: number;
      readonly dtype: DType;
      readonly dims: readonly number[];
    }
  | {
      readonly ask: 'generate';
      readonly session: number;
      readonly prompts: readonly (readonly number[])[];
      readonly options: GenerateOptions;
      /** True if the page changes logits. */
      readonly filters: boolean;
    }
  | { readonly ask: 'choose'; readonly of: number; readonly logits: ArrayLike<number> }
  | { readonly ask: 'free'; readonly session: number; readonly gpuId: number }
  | { readonly ask: 'release'; readonly session: number }
  | { readonly ask: 'abort'; readonly of: number }
);

export type Answer =
  | { readonly tell: 'tokens'; readonly id: number; readonly tokens: readonly number[] }
  | {
      /** Logits of a row for the page to change; the generation waits for `choose`. */
      readonly tell: 'logits';
      readonly id: number;
      readonly given: Parameters<OnLogits>;
    }
  | { readonly tell: 'value'; readonly id: number; readonly value: unknown }
  | {
      readonly tell: 'error';
      readonly id: number;
      readonly code: ErrorCode;
      readonly message: string;
      readonly stack: string;
      readonly place: ErrorPlace;
    }
  | {
      readonly tell: 'progress';
      readonly id: number;
      readonly stage: string;
      readonly done: number;
      readonly total: number;
    }
  | {
      readonly tell: 'log';
      /** The session made last: the runtime is shared. */
      readonly id: number;
      readonly severity: number;
      readonly category: string;
      readonly text: string;
    };
