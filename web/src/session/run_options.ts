// What a run is asked for, and what it answers.
import type { Counters } from '../device/counters';
import type { GpuTime } from '../device/profile';
import type { DispatchTime } from './node_times';
import type { Span, Timed } from '../timeline';
import type { TensorOnGpu, Value } from '../wire/values';

export interface RunOptions {
  /** Names; all by default. */
  readonly outputs?: readonly string[];
  /** Those of them to leave on the GPU: the caller frees their buffers. */
  readonly outputsOnGpu?: readonly string[];
  /**
   * GPU tensors to write outputs into, by name: of the session's device, and of exactly the output's type and shape.
   */
  readonly bind?: { readonly [name: string]: TensorOnGpu };
  /**
   * With enableGraphCapture, which capture this run is of. By default there is one for each set of input shapes. A
   * number from 0 names one that has its shapes from its first run; -1 neither captures nor replays.
   */
  readonly graphId?: number;
  readonly signal?: AbortSignal;
  /** Copies the bytes of an output that are about to be gone; by default into memory of its own. */
  readonly copy?: (bytes: Uint8Array) => Uint8Array;
  /** Have the run say what the worker did when, and what the GPU took: each dispatch, or the run as it is. */
  readonly profile?: Timed;
  /** Told of the pipelines that a first run waits for. */
  readonly onProgress?: (stage: string, done: number, total: number) => void;
}

export interface RunInfo {
  readonly run_ms: number;
  /** Of them, those spent waiting for pipelines and making bind groups. */
  readonly compile_ms: number;
  /** Whether the run made no pipeline, buffer or bind group because a recording had them all. */
  readonly replayed: boolean;
  readonly segments: number;
  readonly counters: Counters;
  /** Each dispatch in order, if asked for. */
  readonly profile?: readonly DispatchTime[];
  /** What its passes took, if these were asked for, and the device has timestamps. */
  readonly gpu?: GpuTime;
  /** What the worker did when, if a profile was asked for. */
  readonly timeline?: readonly Span[];
}

export interface RunResult {
  readonly outputs: { readonly [name: string]: Value };
  readonly info: RunInfo;
}

/** A run whose GPU work is submitted. */
export interface SubmittedRun {
  finish(start: number): Promise<RunResult>;
}
