// The members of `env`, by onnxruntime-web's names.
import type { WasmFilePaths } from './runtime_files';

export type LogLevel = 'verbose' | 'info' | 'warning' | 'error' | 'fatal';

export interface CompileListener {
  readonly onProgress?: (stage: string, done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Something in the page that compiles ONNX files. */
export interface ModelCompiler {
  compile(model: Uint8Array, listener?: CompileListener): Promise<Uint8Array>;
}

export interface WebAssemblyFlags {
  /**
   * Threads that share the work of a node; 0 (the default): one for each core, up to 8. If it is 1 before the first
   * session, no session of the page has more, and browsers cache the compiled core for the next visit.
   */
  numThreads?: number;
  /** true (the default): relaxed SIMD if the browser has it; or the name of one. Nothing runs without SIMD. */
  simd?: boolean | 'fixed' | 'relaxed';
  /** The former name of `env.trace`. */
  trace?: boolean;
  /** Milliseconds to wait for the core to load; 0 (the default): no limit. */
  initTimeout?: number;
  /** The places of the package's files: a folder's URL, or URLs of single files. Default: next to this module. */
  wasmPaths?: string | WasmFilePaths;
  /** The bytes of core.wasm, instead of fetching it. */
  wasmBinary?: ArrayBufferLike | Uint8Array;
  /**
   * True to run sessions in a worker, which keeps the page's thread free. This is the default if there are workers,
   * unless sessions must share GPU memory with the page: a device of the page's own, or outputs left on the GPU. A
   * session in a worker that receives GPU tensors of the page is loaded again in the page.
   */
  proxy?: boolean;
}

export interface WebGpuProfilingTensor {
  readonly dims: readonly number[];
  readonly dataType: string;
}

/** A kernel's time, as passed to `env.webgpu.profiling.ondata`. */
export interface WebGpuProfilingData {
  readonly version: 1;
  readonly inputsMetadata: readonly WebGpuProfilingTensor[];
  readonly outputsMetadata: readonly WebGpuProfilingTensor[];
  readonly kernelId: number;
  readonly kernelType: string;
  readonly kernelName: string;
  readonly programName: string;
  /** Nanoseconds. */
  readonly startTime: number;
  readonly endTime: number;
}

export interface WebGpuFlags {
  /** The same as `profiling.mode`. */
  profilingMode?: 'off' | 'default';
  profiling: { mode?: 'off' | 'default'; ondata?: (data: WebGpuProfilingData) => void };
  powerPreference?: 'low-power' | 'high-performance';
  forceFallbackAdapter?: boolean;
  /** The adapter to use. It provides one device. */
  adapter?: GPUAdapter;
  /** The device to use; once there is a session on WebGPU, a promise of its device. */
  get device(): Promise<GPUDevice>;
  set device(value: GPUDevice | undefined);
  /** Has no effect. */
  validateInputContent?: boolean;
}
