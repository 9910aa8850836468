// How pages name execution providers.
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

/** What a context is made with; one of the page's own has its own. */
export interface WebNNContextOptions extends Pick<WebNNOptions, 'deviceType' | 'powerPreference'> {
  /** Without effect. */
  readonly numThreads?: number;
}

export interface WebNNExecutionProviderName extends Pick<WebNNOptions, 'deviceId'> {
  readonly name: 'webnn';
}

/** WebNN on a context of the session's own. */
export interface WebNNOptionsWithoutMLContext extends WebNNExecutionProviderName, WebNNContextOptions {
  readonly context?: never;
}

/** WebNN on a context of the page's own, which stays the page's. The session runs in the page's thread. */
export interface WebNNOptionsWithMLContext extends WebNNExecutionProviderName, WebNNContextOptions {
  readonly context: MLContextHandle;
}

/** The same, of a context that was made of a GPUDevice. */
export interface WebNNOptionsWebGpu extends WebNNExecutionProviderName {
  readonly context: MLContextHandle;
  readonly gpuDevice: GPUDevice;
}

export type WebNNExecutionProviderOption =
  | WebNNOptionsWithoutMLContext
  | WebNNOptionsWithMLContext
  | WebNNOptionsWebGpu;

/** A provider, alone or with options. Those of onnxruntime that are not here are left out, with a warning. */
export type ExecutionProvider =
  | ExecutionProviderName
  | WebGpuProvider
  | WebGLProvider
  | WebNNExecutionProviderOption
  | { readonly name: 'wasm' | 'cpu' }
  | { readonly name: string }
  | string;

/** A device of the page's own, and the provider that is to take it. */
export interface PageDevice {
  readonly provider: string;
  readonly source: object;
}

export interface ExternalFile {
  /** What the model calls it. */
  readonly path: string;
  readonly data: ModelFile;
}

// The same by onnxruntime-web's names.
export type FileType = ModelFile;
export type ExternalDataFileDescription = ExternalFile;
export type ExternalDataFileType = ExternalFile | string;

/** The name that all else knows it by. */
export function nameOf(provider: ExecutionProvider): string {
  const name = typeof provider === 'string' ? provider : provider.name;
  return name === 'cpu' ? CORE_PROVIDER : name;
}

/** Whether it is a provider of this build that has devices. */
export function hasDevice(provider: ExecutionProvider): boolean {
  const name = nameOf(provider);
  return name !== CORE_PROVIDER && providers.includes(name);
}
