// Types of the JSON fields in messages to and from this worker. Python's types are in
// py_ort/runtime/peer/json_fields.py; a test compares them.
import type { DecodeTask } from './decode';

export type { DecodeCache, Decoded, DecodeTask } from './decode';

/** CreateSession.options; `plan` is the URL of an ONNX model. */
export interface PeerOptions {
  /** URLs of onnxruntime-web's files. */
  readonly module: string;
  readonly mjs: string;
  readonly wasm: string;
  readonly provider: string;
  readonly threads: number;
  /** false if a node on the CPU is an error. */
  readonly fallback?: boolean;
  /** Further session options of onnxruntime-web. */
  readonly session?: object;
}

/** SessionCreated.info. */
export interface PeerSessionInfo {
  readonly create_ms: number;
  readonly version: string;
}

/** Run.options: generate tokens, instead of running feeds. */
export interface PeerRunOptions {
  readonly decode: DecodeTask;
}

/** RunResult.info, for a run with feeds. */
export interface PeerRunInfo {
  readonly run_ms: number;
}
