// Pages' names of execution providers.
import { providers } from 'virtual:build';
import { CORE_PROVIDER } from '../contract/providers';
import type { ModelFile } from '../package/model_kinds';
import type { WebGLOptions, WebGpuOptions, WebNNOptions } from '../schema/provider_options';
import type { MLContextHandle } from './tensor_types';

export type ExecutionProviderName = 'webgpu' | 'webgl' | 'webnn' | 'wasm' | 'cpu';

/** WebGPU with its options, by onnxruntime's names. */
export interface WebGpuProvider extends WebGpuOptions {
  readonly name: 'webgpu';
  readonly device?: GPUDevice;
  readonly enableRobustness?: boolean;
  readonly [option: string]: unknown;
}

/** WebGL with its options. */
export interface WebGLProvider extends Omit<WebGLOptions, 'checkWrites'> {
  readonly name: 'webgl';
}

/** Options of a new context; they have no effect on one of the page's own. */
export interface WebNNContextOptions extends Pick<WebNNOptions, 'deviceType' | 'powerPreference'> {
  /** Has no effect. */
  readonly numThreads?: number;
}

export interface WebNNExecutionProviderName extends Pick<WebNNOptions, 'deviceId'> {
  readonly name: 'webnn';
}

/** WebNN on a context that the session makes. */
export interface WebNNOptionsWithoutMLContext extends WebNNExecutionProviderName, WebNNContextOptions {
  readonly context?: never;
}

/** WebNN on one of the page's own contexts, which remains the page's. The session runs in the page's thread. */
export interface WebNNOptionsWithMLContext extends WebNNExecutionProviderName, WebNNContextOptions {
  readonly context: MLContextHandle;
}

/** The same, for a context made from a GPUDevice. */
export interface WebNNOptionsWebGpu extends WebNNExecutionProviderName {
  readonly context: MLContextHandle;
  readonly gpuDevice: GPUDevice;
}

export type WebNNExecutionProviderOption =
  | WebNNOptionsWithoutMLContext
  | WebNNOptionsWithMLContext
  | WebNNOptionsWebGpu;

/** A provider, alone or with options. onnxruntime's other providers are skipped, with a warning. */
export type ExecutionProvider =
  | ExecutionProviderName
  | WebGpuProvider
  | WebGLProvider
  | WebNNExecutionProviderOption
  | { readonly name: 'wasm' | 'cpu' }
  | { readonly name: string }
  | string;

/** One of the page's own devices, and the provider that should use it. */
export interface PageDevice {
  readonly provider: string;
  readonly source: object;
}

export interface ExternalFile {
  /** The model's name for it. */
  readonly path: string;
  readonly data: ModelFile;
}

// The same by onnxruntime-web's names.
export type FileType = ModelFile;
export type ExternalDataFileDescription = ExternalFile;
export type ExternalDataFileType = ExternalFile | string;

/** The provider's main name. */
export function nameOf(provider: ExecutionProvider): string {
  const name = typeof provider === 'string' ? provider : provider.name;
  return name === 'cpu' ? CORE_PROVIDER : name;
}

/** True for a provider of this build that has devices. */
export function hasDevice(provider: ExecutionProvider): boolean {
  const name = nameOf(provider);
  return name !== CORE_PROVIDER && providers.includes(name);
}
