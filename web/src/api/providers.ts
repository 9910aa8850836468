// How pages name execution providers.
import { providers } from 'virtual:build';
import { CORE_PROVIDER } from '../contract/providers';
import type { ModelFile } from '../package/model_file';
import type { WebGpuOptions } from '../schema/provider_options';

export type ExecutionProviderName = 'webgpu' | 'wasm' | 'cpu';

/** WebGPU with its options, by onnxruntime's names. */
export interface WebGpuProvider extends WebGpuOptions {
  readonly name: 'webgpu';
  readonly device?: GPUDevice;
  readonly enableRobustness?: boolean;
  readonly [option: string]: unknown;
}

/** A provider, alone or with options. Those of onnxruntime that are not here are left out, with a warning. */
export type ExecutionProvider =
  | ExecutionProviderName
  | WebGpuProvider
  | { readonly name: 'wasm' | 'cpu' }
  | { readonly name: string }
  | string;

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
