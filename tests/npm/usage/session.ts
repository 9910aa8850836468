import * as ort from 'py-ort-web';
import { InferenceSession, Tensor } from 'py-ort-web/webgpu';

ort.env.wasm.numThreads = 2;
ort.env.wasm.proxy = true;
ort.env.wasm.wasmPaths = '/dist/';
ort.env.logLevel = 'error';

const options: InferenceSession.SessionOptions = {
  executionProviders: ['webgpu', 'wasm'],
  graphOptimizationLevel: 'all',
  freeDimensionOverrides: { batch: 1 },
  preferredOutputLocation: { logits: 'cpu' },
  logSeverityLevel: 3,
};
const session: InferenceSession = await InferenceSession.create('model.onnx', options);
const fromBytes = await ort.InferenceSession.create(new Uint8Array(8), { executionProviders: ['wasm'] });

declare const context: InferenceSession.WebNNOptionsWithMLContext['context'];
const webnn: InferenceSession.WebNNExecutionProviderOption = { name: 'webnn', deviceType: 'gpu', context };
const own: InferenceSession.WebNNContextOptions = { deviceType: 'npu', powerPreference: 'low-power', numThreads: 2 };
const onContext = await InferenceSession.create('model.onnx', {
  executionProviders: [webnn, { name: 'webnn', ...own }],
  preferredOutputLocation: 'ml-tensor',
});
await onContext.release();

const feeds: Record<string, ort.Tensor> = {};
feeds[session.inputNames[0]] = new ort.Tensor('float32', new Float32Array(12), [3, 4]);
feeds.mask = new Tensor('int64', [1n, 2n], [2]);
feeds.flags = new Tensor('bool', [true, false]);
const results: InferenceSession.ReturnType = await session.run(feeds);
const output = results[session.outputNames[0]] as ort.Tensor;
const numbers = output.data as Float32Array;
const best = numbers.indexOf(Math.max(...numbers));
const run: InferenceSession.RunOptions = { tag: `run ${best}` };
await session.run(feeds, ['logits'], run);
await fromBytes.release();

// @ts-expect-error there is no such type
new Tensor('float33', [1]);
// @ts-expect-error a session is made by create
new InferenceSession();
