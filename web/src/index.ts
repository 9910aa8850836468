// py_ort.js: sessions in a page of one's own, without Python. core.mjs and core.wasm lie beside it.
//
//   import { InferenceSession, Tensor } from './py_ort.js';
//   const session = await InferenceSession.create('model.plan', 'model.weights', { webgpu: { enableGraphCapture: true }
//   }); const { y } = await session.run({ x: new Tensor('float32', [1, 2, 3], [1, 3]) }); console.log(await
//   y.getData());
//
// `Session` is the same with bytes instead of typed arrays.
export {
  InferenceSession,
  type InferenceRunOptions,
  type InferenceSessionOptions,
  type OnnxValue,
} from './api/inference_session';
export { Tensor, type GpuBufferOptions, type TensorLocation } from './api/tensor';
export type { TensorData, TensorType } from './api/elements';
export { DType, ErrorCode, ValueKind } from './schema';
export { RuntimeError } from './errors';
export { Runtime } from './session/runtime';
export { Session, type SessionOptions } from './session/session';
export type { SessionInfo } from './session/state';
export type { WebGpuOptions } from './core/webgpu_options';
export type { RunInfo, RunOptions, RunResult } from './session/run_options';
export type { Feeds } from './session/feeds';
export type { Container, TensorOnCpu, TensorOnGpu, Value } from './wire/values';
