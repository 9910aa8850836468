// `env`, as in onnxruntime-web: set it before the first session is made.
import { invalid } from '../errors';
import type * as types from './env_types';
import type { LogLevel, WebAssemblyFlags, WebGpuFlags } from './env_types';
import type { PageDevice } from './providers';
import { OWN_FOLDER } from './runtime_files';
import type * as files from './runtime_files';
import { VERSION } from './version';

export interface Env {
  /** The least severe messages shown on the console. Default: warnings. */
  logLevel?: LogLevel;
  /** Show all messages on the console. */
  debug?: boolean;
  /**
   * Show sessions made from now on, and their runs, in the browser's own performance timeline: DevTools have tracks of
   * runs, nodes and the GPU.
   */
  trace?: boolean;
  readonly versions: { readonly common: string; readonly web: string; readonly py_ort: string };
  readonly wasm: WebAssemblyFlags;
  readonly webgl: Record<string, unknown>;
  readonly webgpu: WebGpuFlags;
  /**
   * Folder of the output of `py-ort export SCRIPT.js`: libraries that pass ONNX models as bytes to `create` get the
   * exported ones.
   */
  exports?: string | URL;
  /**
   * URL of a `py-ort compile-server`, which compiles ONNX files that were not exported. Exports stay in the browser's
   * cache until their models change. Where it cannot, `fallback` is tried. null: no server. Experimental: a
   * `PageCompiler` of py_ort_compiler.mjs.
   */
  compiler?: string | URL | types.ModelCompiler | null;
  /**
   * Returns a module with onnxruntime-web's API, for models that were not exported: `() => import('onnxruntime-web')`.
   * Sessions of ONNX files run there. Sessions of `.pyort` files of another version run there, too, if the ONNX file is
   * next to them.
   */
  fallback?: (() => unknown) | null;
  [name: string]: unknown;
}

/** The types of `env`, by onnxruntime-web's names. */
export declare namespace Env {
  type WasmPathPrefix = string;
  type WasmFilePaths = files.WasmFilePaths;
  type WasmPrefixOrFilePaths = string | files.WasmFilePaths;
  type WebAssemblyFlags = types.WebAssemblyFlags;
  type WebGLFlags = Record<string, unknown>;
  type WebGpuProfilingData = types.WebGpuProfilingData;
  type WebGpuProfilingDataV1 = types.WebGpuProfilingData;
  type WebGpuProfilingDataV1TensorMetadata = types.WebGpuProfilingTensor;
  type WebGpuFlags = types.WebGpuFlags;
}

const SEVERITIES: readonly LogLevel[] = ['verbose', 'info', 'warning', 'error', 'fatal'];

let devicePut: GPUDevice | undefined;
let openDevice: (() => Promise<GPUDevice>) | undefined;
/** The one among the page's own devices that `openDevice` returns. */
let sessionDevice: PageDevice | undefined;
/** The same, if sessions are in a worker: one of the page's own devices, for its tensors. */
let openOther: (() => Promise<GPUDevice>) | undefined;

export const env: Env = {
  logLevel: 'warning',
  versions: { common: VERSION, web: VERSION, py_ort: VERSION },
  wasm: { wasmPaths: OWN_FOLDER },
  webgl: {},
  webgpu: {
    profiling: {},
    get device(): Promise<GPUDevice> {
      if (devicePut) return Promise.resolve(devicePut);
      const found = (openDevice ?? openOther ?? noDevice)();
      // Code that reads all members of env does not wait for this one.
      found.catch(() => undefined);
      return found;
    },
    set device(value: GPUDevice | undefined) {
      devicePut = value;
      sessionDevice = undefined;
    },
  },
};

const noDevice = () =>
  Promise.reject<GPUDevice>(invalid('env.webgpu.device: no session of this page runs on WebGPU yet'));

/** The device that the page set. */
export function ownDevice(): GPUDevice | undefined {
  return devicePut;
}

/** Sets the value of `env.webgpu.device`. @param given the page's object from which it was made, if any. */
export function noteDevice(open: () => Promise<GPUDevice>, given?: PageDevice): void {
  openDevice = open;
  const device = given && 'lost' in given.source ? given : undefined;
  sessionDevice = device;
  void (device?.source as GPUDevice | undefined)?.lost.then(() => {
    if (sessionDevice === device) sessionDevice = undefined;
  });
}

/**
 * The page's own device of its last session. Further sessions use it too, since the page takes its buffers from there.
 */
export function deviceOfSession(): PageDevice | undefined {
  return sessionDevice;
}

/** Sets the device if there is no better one. */
export function offerDevice(open: () => Promise<GPUDevice>): void {
  openOther = open;
}

export function severityOf(level: LogLevel | undefined): number {
  if (env.debug) return 0;
  const found = SEVERITIES.indexOf(level ?? 'warning');
  if (found < 0) {
    const text = `env.logLevel is one of ${SEVERITIES.join(', ')}, not "${String(level)}"`;
    throw invalid(text);
  }
  return found;
}

/** `env.trace`, formerly `env.wasm.trace`. */
export function tracing(): boolean {
  return env.trace ?? env.wasm.trace ?? false;
}

/** Members of `env` that were set and have no effect here, in words. */
export function withoutEffect(): string[] {
  return [
    ...(env.webgpu.validateInputContent ? ['env.webgpu.validateInputContent'] : []),
    ...Object.keys(env.webgl).map((name) => `env.webgl.${name}`),
  ];
}
