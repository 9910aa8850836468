// What is JSON in messages to and from this worker. Python's types are py_ort/runtime/peer/json_fields.py; a test
// compares them.
import type { DecodeTask } from './decode';

export type { DecodeCache, Decoded, DecodeTask } from './decode';

/** CreateSession.options, of which `plan` is the URL of an ONNX model. */
export interface PeerOptions {
  /** URLs of onnxruntime-web's files. */
  readonly module: string;
  readonly mjs: string;
  readonly wasm: string;
  readonly provider: string;
  readonly threads: number;
  /** false if a node on the CPU is to be an error. */
  readonly fallback?: boolean;
  /** More of its session options. */
  readonly session?: object;
}

/** SessionCreated.info. */
export interface PeerSessionInfo {
  readonly create_ms: number;
  readonly version: string;
}

/** Run.options: a text to write, instead of feeds. */
export interface PeerRunOptions {
  readonly decode: DecodeTask;
}

/** RunResult.info of a run with feeds. */
export interface PeerRunInfo {
  readonly run_ms: number;
}
