// What `env` has, by onnxruntime-web's names.
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
   * Threads that share the work of a node; 0 (the default): as many as there are cores, up to 8. 1 before the first
   * session: no session of the page has more, and browsers keep what they make of the core for the next visit.
   */
  numThreads?: number;
  /** true (the default): relaxed SIMD where the browser has it; or which of the two. Without SIMD nothing runs. */
  simd?: boolean | 'fixed' | 'relaxed';
  /** The older name of `env.trace`. */
  trace?: boolean;
  /** Milliseconds that loading the core may take; 0 (the default): no limit. */
  initTimeout?: number;
  /** Where the package's files are: a folder's URL, or those of single files. Default: beside this module. */
  wasmPaths?: string | WasmFilePaths;
  /** The bytes of core.wasm, instead of fetching it. */
  wasmBinary?: ArrayBufferLike | Uint8Array;
  /**
   * Whether sessions run in a worker, which keeps the page's thread free. By default they do where there are workers,
   * unless they have to share GPU memory with the page: a device of the page's own, or outputs left on the GPU. One in
   * a worker that is given GPU tensors of the page is loaded again in the page.
   */
  proxy?: boolean;
}

export interface WebGpuProfilingTensor {
  readonly dims: readonly number[];
  readonly dataType: string;
}

/** A kernel's time, as `env.webgpu.profiling.ondata` gets it. */
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
  /** The adapter to use. It gives one device. */
  adapter?: GPUAdapter;
  /** The device to use; once there is a session on WebGPU, a promise of its device. */
  get device(): Promise<GPUDevice>;
  set device(value: GPUDevice | undefined);
  /** Without effect. */
  validateInputContent?: boolean;
}
