// How pages name execution providers.
import type { ModelFile } from '../package/model_file';

export type ExecutionProviderName = 'webgpu' | 'wasm' | 'cpu';

/** A provider with its options: those of WebGPU by onnxruntime's names. */
export type ExecutionProvider =
  | ExecutionProviderName
  | ({ readonly name: 'webgpu'; readonly device?: GPUDevice } & Readonly<Record<string, unknown>>)
  | { readonly name: 'wasm' | 'cpu' };

export interface ExternalFile {
  /** What the model calls it. */
  readonly path: string;
  readonly data: ModelFile;
}

export function isWebGpu(provider: ExecutionProvider): boolean {
  return (typeof provider === 'string' ? provider : provider.name) === 'webgpu';
}
