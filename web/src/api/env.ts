// `env`, as onnxruntime-web has it: set before the first session is made.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { OWN_FOLDER, type WasmFilePaths } from './runtime_files';
import { VERSION } from './version';

export type LogLevel = 'verbose' | 'info' | 'warning' | 'error' | 'fatal';

export interface WebAssemblyFlags {
  /** Threads that share the work of a node; 0 (the default): as many as there are cores, up to 8. */
  numThreads?: number;
  /** true (the default): relaxed SIMD where the browser has it; or which of the two. Without SIMD nothing runs. */
  simd?: boolean | 'fixed' | 'relaxed';
  trace?: boolean;
  /** Milliseconds that loading the core may take; 0 (the default): no limit. */
  initTimeout?: number;
  /** Where the package's files are: a folder's URL, or those of single files. Default: beside this module. */
  wasmPaths?: string | WasmFilePaths;
  /** The bytes of core.wasm, instead of fetching it. */
  wasmBinary?: ArrayBufferLike | Uint8Array;
  /**
   * Whether sessions run in a worker, which keeps the page's thread free. By default they do where there are workers,
   * unless they have to share GPU memory with the page: a device of the page's own, or outputs left on the GPU.
   */
  proxy?: boolean;
}

/** A kernel's time, as `env.webgpu.profiling.ondata` gets it. */
export interface WebGpuProfilingData {
  readonly version: 1;
  readonly inputsMetadata: readonly { readonly dims: readonly number[]; readonly dataType: string }[];
  readonly outputsMetadata: readonly { readonly dims: readonly number[]; readonly dataType: string }[];
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
  validateInputContent?: boolean;
}

export interface Env {
  /** The least severe messages on the console. Default: warnings. */
  logLevel?: LogLevel;
  /** Everything on the console. */
  debug?: boolean;
  /** Without effect; `performance` and profiles show what happens when. */
  trace?: boolean;
  readonly versions: { readonly common: string; readonly web: string; readonly py_ort: string };
  readonly wasm: WebAssemblyFlags;
  readonly webgl: Record<string, unknown>;
  readonly webgpu: WebGpuFlags;
  /**
   * Folder of what `py-ort export SCRIPT.js` wrote: libraries that hand ONNX models of their own to `create` as bytes
   * get the exported ones.
   */
  exports?: string | URL;
  [name: string]: unknown;
}

const SEVERITIES: readonly LogLevel[] = ['verbose', 'info', 'warning', 'error', 'fatal'];

let ownDevice: GPUDevice | undefined;
let openDevice: (() => Promise<GPUDevice>) | undefined;

export const env: Env = {
  logLevel: 'warning',
  versions: { common: VERSION, web: VERSION, py_ort: VERSION },
  wasm: { wasmPaths: OWN_FOLDER },
  webgl: {},
  webgpu: {
    profiling: {},
    get device(): Promise<GPUDevice> {
      if (ownDevice) return Promise.resolve(ownDevice);
      if (openDevice) return openDevice();
      const text = 'env.webgpu.device: no session of this page runs on WebGPU yet';
      return Promise.reject(new RuntimeError(ErrorCode.invalid_argument, text));
    },
    set device(value: GPUDevice | undefined) {
      ownDevice = value;
    },
  },
};

/** The device that the page set. */
export function deviceOfPage(): GPUDevice | undefined {
  return ownDevice;
}

/** What `env.webgpu.device` is from now on. */
export function noteDevice(open: () => Promise<GPUDevice>): void {
  openDevice = open;
}

export function severityOf(level: LogLevel | undefined): number {
  if (env.debug) return 0;
  const found = SEVERITIES.indexOf(level ?? 'warning');
  if (found < 0) {
    const text = `env.logLevel is one of ${SEVERITIES.join(', ')}, not "${String(level)}"`;
    throw new RuntimeError(ErrorCode.invalid_argument, text);
  }
  return found;
}

/** What was set in `env` and does nothing here, in words. */
export function withoutEffect(): string[] {
  return [
    ...(env.trace ? ['env.trace'] : []),
    ...(env.wasm.trace ? ['env.wasm.trace'] : []),
    ...(env.webgpu.validateInputContent ? ['env.webgpu.validateInputContent'] : []),
    ...Object.keys(env.webgl).map((name) => `env.webgl.${name}`),
  ];
}
