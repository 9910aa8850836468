// py_ort.js: sessions in a page of one's own, without Python. core.mjs and core.wasm lie beside it.
//
//   import { DType, Session } from './py_ort.js';
//   const session = await Session.load('model.plan', 'model.weights');
//   const { outputs } = await session.run({ x: { dtype: DType.float32, dims: [1, 3], data: new Uint8Array(values.buffer) } });
export { DType, ErrorCode, ValueKind } from './schema';
export { RuntimeError } from './errors';
export { Runtime } from './session/runtime';
export { Session, type SessionInfo, type SessionOptions } from './session/session';
export type { RunInfo, RunOptions, RunResult } from './session/run';
export type { Container, Feeds, Tensor, TensorOnCpu, TensorOnGpu, Value } from './session/tensors';
