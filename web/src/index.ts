// The API: models in a page of one's own, without Python, by onnxruntime-web's names.
//
//   import { InferenceSession, Tensor } from './py_ort.mjs';
//   const session = await InferenceSession.create('model.pyort');
//   const { y } = await session.run({ x: new Tensor('float32', [1, 2, 3], [1, 3]) });
//   console.log(y.data);
//
// Its other files lie beside it, unless `env.wasm.wasmPaths` says where.
import { Generation } from './api/generation';
import { InferenceSession } from './api/inference_session';
import { Tensor } from './api/tensor';
import { RuntimeError } from './errors';

export { env, type Env } from './api/env';
export type { CompileListener, LogLevel, ModelCompiler, WebAssemblyFlags, WebGpuFlags } from './api/env_types';
export type {
  ExecutionProvider,
  ExecutionProviderName,
  ExternalDataFileDescription,
  ExternalDataFileType,
  ExternalFile,
  FileType,
  WebGLProvider,
  WebGpuProvider,
} from './api/providers';
export type {
  DecoderNames,
  FinishReason,
  GenerateInfo,
  GenerateOptions,
  OnLogits,
} from './generate/generate_options';
export { Generation, type GenerationOptions, type PromptTokens } from './api/generation';
export type { Fetches } from './api/fetches';
export { InferenceSession } from './api/inference_session';
export type { PlacedNode, ValueMetadata } from './api/metadata';
export type {
  InferenceRunOptions,
  InferenceSessionOptions,
  OnnxValueDataLocation,
  OutputLocation,
} from './api/session_options';
export { Tensor } from './api/tensor';
export type * from './api/tensor_types';
export type { OnnxValue, OnnxValues } from './api/values';
export { ErrorCode } from './schema';
export { RuntimeError } from './errors';
export type { ModelFile } from './package/model_kinds';
export type { RunInfo } from './session/run_options';

// Consoles and error reports show names of classes, which are shortened in what is published.
for (const [name, value] of Object.entries({ Generation, InferenceSession, RuntimeError, Tensor }))
  Object.defineProperty(value, 'name', { value: name });
