// How pages name execution providers.
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

export function isWebGpu(provider: ExecutionProvider): boolean {
  return (typeof provider === 'string' ? provider : provider.name) === 'webgpu';
}
