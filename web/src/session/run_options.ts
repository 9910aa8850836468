// A run's options and its results.
import type { Counters } from '../device/counters';
import type { GpuTime } from '../device/profile';
import type { DispatchTime } from './node_times';
import type { Span, Timed } from '../timeline';
import type { TensorOnGpu, Value } from '../wire/values';

export interface RunOptions {
  /** Names; all by default. */
  readonly outputs?: readonly string[];
  /** The outputs to leave on the GPU: the caller frees their buffers. */
  readonly outputsOnGpu?: readonly string[];
  /**
   * GPU tensors into which to write outputs, by name: on the session's device, with exactly the output's type and
   * shape.
   */
  readonly bind?: { readonly [name: string]: TensorOnGpu };
  /**
   * With enableGraphCapture, the capture of this run. By default there is one for each set of input shapes. A number
   * from 0 names a capture that has the shapes of its first run; -1 neither captures nor replays.
   */
  readonly graphId?: number;
  readonly signal?: AbortSignal;
  /** True if the caller may abort: events that are due are handled before the run begins. */
  readonly abortable?: boolean;
  /** Copies the bytes of an output before they are gone; by default into new memory. */
  readonly copy?: (bytes: Uint8Array) => Uint8Array;
  /** Record the worker's times, and the GPU's: for each dispatch, or for the whole run. */
  readonly profile?: Timed;
  /** Called with the progress of the pipelines that a first run waits for. */
  readonly onProgress?: (stage: string, done: number, total: number) => void;
}

export interface RunInfo {
  readonly run_ms: number;
  /** The part of it spent on waiting for pipelines and making bind groups. */
  readonly compile_ms: number;
  /** True if the run made no pipeline, buffer or bind group because a recording had them all. */
  readonly replayed: boolean;
  readonly segments: number;
  readonly counters: Counters;
  /** Each dispatch in order, if requested. */
  readonly profile?: readonly DispatchTime[];
  /** The time of its passes, if requested and if the device has timestamps. */
  readonly gpu?: GpuTime;
  /** The worker's times, if a profile was requested. */
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
