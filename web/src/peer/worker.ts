// The other engine: a worker with the same protocol, which runs sessions with onnxruntime-web. json_fields.ts has the
// types of its JSON.
import {
  Body,
  type CreateSessionT,
  DType,
  ErrorCode,
  RunResultT,
  type RunT,
  SessionCreatedT,
  type ReleaseSessionT,
  AckT,
} from '../schema';
import { RuntimeError } from '../errors';
import { type Answer, Connection } from '../page/connection';
import { fetchThroughGateway, reachable } from '../page/gateway';
import { fetchedBytes } from '../wire/fetching';
import { readTensor, type ReceivedMessage, TensorWriter } from '../wire/messages';
import { isOnGpu } from '../wire/values';
import { typeName } from '../contract/elements';
import { decode } from './decode';
import type { Decoded, PeerOptions, PeerRunInfo, PeerRunOptions, PeerSessionInfo } from './json_fields';
import type { Ort, OrtSession, OrtTensor } from './ort';

const told = (info: PeerSessionInfo | PeerRunInfo | Decoded): string => JSON.stringify(info);

type ArrayOf = new (bufferOrLength: ArrayBuffer | number) => ArrayBufferView;

const ARRAYS: { readonly [type: string]: ArrayOf | undefined } = {
  float32: Float32Array,
  float64: Float64Array,
  float16: (globalThis as unknown as { Float16Array?: ArrayOf }).Float16Array ?? Uint16Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

let ort: Ort | undefined;
let created = 0;
const sessions = new Map<number, OrtSession>();

async function create({ plan, options }: CreateSessionT): Promise<Answer> {
  const given = JSON.parse(options as string) as PeerOptions;
  const { module, mjs, wasm, provider, threads, fallback, session: more } = given;
  const start = performance.now();
  if (!ort) {
    ort = (await import(String(reachable(module)))) as Ort;
    ort.env.wasm.wasmPaths = { mjs: String(reachable(mjs)), wasm: String(reachable(wasm)) };
    ort.env.wasm.numThreads = threads;
    ort.env.logLevel = 'error';
  }
  const model = await fetchedBytes(plan as string);
  const strict =
    fallback === false ? { extra: { session: { disable_cpu_ep_fallback: '1' } }, logSeverityLevel: 4 } : {};
  const session = await ort.InferenceSession.create(model, {
    executionProviders: [provider],
    graphOptimizationLevel: 'all',
    ...more,
    ...strict,
  });
  const id = ++created;
  sessions.set(id, session);
  const info = { create_ms: performance.now() - start, version: ort.env.versions.web };
  return { type: Body.SessionCreated, body: new SessionCreatedT(id, told(info)) };
}

async function run({ session: id, feeds, options }: RunT, payload: Uint8Array): Promise<Answer> {
  const session = sessions.get(id);
  if (!session || !ort) throw new RuntimeError(ErrorCode.no_such_session, `there is no session ${id}`);
  if (options) {
    const { decode: task } = JSON.parse(options as string) as PeerRunOptions;
    const decoded = await decode(ort, session, task, ARRAYS);
    return { type: Body.RunResult, body: new RunResultT([], told(decoded)) };
  }
  const inputs: Record<string, OrtTensor> = {};
  for (const feed of feeds) {
    const tensor = readTensor(feed, payload);
    const type = typeName(tensor.dtype);
    const array = ARRAYS[type];
    if (isOnGpu(tensor) || !array)
      throw new RuntimeError(ErrorCode.not_implemented, `onnxruntime-web is not fed ${type} from here`);
    inputs[feed.name as string] = new ort.Tensor(type, new array(tensor.data.slice().buffer), tensor.dims);
  }
  const start = performance.now();
  const results = await session.run(inputs);
  const info = { run_ms: performance.now() - start };
  const writer = new TensorWriter();
  for (const name of session.outputNames) {
    const { type, dims, data } = results[name];
    const dtype = DType[(type === 'bool' ? 'bool_' : type) as keyof typeof DType];
    if (dtype === undefined || !ArrayBuffer.isView(data))
      throw new RuntimeError(ErrorCode.not_implemented, `${type} of onnxruntime-web is not brought from there`);
    writer.add(name, { dtype, dims, data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) });
  }
  return {
    type: Body.RunResult,
    body: new RunResultT(writer.descriptions, JSON.stringify(info)),
    payload: writer.payload,
  };
}

async function answer({ type, body, payload }: ReceivedMessage): Promise<Answer> {
  switch (type) {
    case Body.CreateSession:
      return create(body as CreateSessionT);
    case Body.Run:
      return run(body as RunT, payload);
    case Body.ReleaseSession: {
      const { session } = body as ReleaseSessionT;
      await sessions.get(session)?.release();
      return { type: Body.Ack, body: new AckT() };
    }
    default:
      throw new RuntimeError(ErrorCode.not_implemented, `onnxruntime-web's worker does not answer ${Body[type]}`);
  }
}

// One run at a time: onnxruntime-web refuses a second one.
let queue: Promise<void> = Promise.resolve();
fetchThroughGateway();
const connection: Connection = await Connection.ofQuery((message) => {
  queue = queue.then(async () => {
    try {
      connection.send(message.id, await answer(message));
    } catch (error) {
      connection.sendError(message.id, error);
    }
  });
});
connection.onClose(() => self.close());
