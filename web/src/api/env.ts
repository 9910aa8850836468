// `env`, as onnxruntime-web has it: set before the first session is made.
import { invalid } from '../errors';
import type * as types from './env_types';
import type { LogLevel, WebAssemblyFlags, WebGpuFlags } from './env_types';
import type { PageDevice } from './providers';
import { OWN_FOLDER } from './runtime_files';
import type * as files from './runtime_files';
import { VERSION } from './version';

export interface Env {
  /** The least severe messages on the console. Default: warnings. */
  logLevel?: LogLevel;
  /** Everything on the console. */
  debug?: boolean;
  /**
   * Has sessions made from then on, and their runs, in the browser's own performance timeline: DevTools show tracks of
   * runs, nodes and the GPU.
   */
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
  /**
   * URL of a `py-ort compile-server`, which compiles ONNX files that were not exported. What it returns stays in the
   * browser's cache. Where it cannot, `fallback` is tried. Experimental: a `PageCompiler` of py_ort_compiler.mjs.
   */
  compiler?: string | URL | types.ModelCompiler;
  /**
   * Gives a module with onnxruntime-web's API, for models that were not exported: `() => import('onnxruntime-web')`.
   * Sessions of ONNX files run there; so do those of `.pyort` files of another version, if the ONNX file is beside.
   */
  fallback?: () => unknown;
  [name: string]: unknown;
}

/** The types around it, by onnxruntime-web's names. */
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
/** Of the page's own devices, the one that `openDevice` gives. */
let sessionDevice: PageDevice | undefined;
/** The same, where sessions are in a worker: one of the page's own, for tensors of the page. */
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
      const open = openDevice ?? openOther;
      if (open) return open();
      const text = 'env.webgpu.device: no session of this page runs on WebGPU yet';
      const none = Promise.reject(invalid(text));
      // Who looks at all members of env does not wait for this one.
      none.catch(() => undefined);
      return none;
    },
    set device(value: GPUDevice | undefined) {
      devicePut = value;
      sessionDevice = undefined;
    },
  },
};

/** The device that the page set. */
export function ownDevice(): GPUDevice | undefined {
  return devicePut;
}

/** What `env.webgpu.device` is from now on. @param given what it was made of, if the page gave that. */
export function noteDevice(open: () => Promise<GPUDevice>, given?: PageDevice): void {
  openDevice = open;
  const device = given && 'lost' in given.source ? given : undefined;
  sessionDevice = device;
  void (device?.source as GPUDevice | undefined)?.lost.then(() => {
    if (sessionDevice === device) sessionDevice = undefined;
  });
}

/** The page's own device on which its last session is: others go there, whose buffers the page has from there. */
export function deviceOfSession(): PageDevice | undefined {
  return sessionDevice;
}

/** What it is if there is nothing better. */
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

/** `env.trace`, which once was `env.wasm.trace`. */
export function tracing(): boolean {
  return env.trace ?? env.wasm.trace ?? false;
}

/** What was set in `env` and does nothing here, in words. */
export function withoutEffect(): string[] {
  return [
    ...(env.webgpu.validateInputContent ? ['env.webgpu.validateInputContent'] : []),
    ...Object.keys(env.webgl).map((name) => `env.webgl.${name}`),
  ];
}
