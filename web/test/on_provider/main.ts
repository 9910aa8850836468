// Runs a plan in Node, on the device of the named provider.
//   node main.mjs JOB.json; job: {plan, weights, core, provider, dims, data}; prints the result.
import '../../src/node/start';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { DType } from '../../src/schema';
import { codeOf, messageOf } from '../../src/errors';
import { filesIn } from '../../src/core/files';
import { sessionStats } from '../../src/page/stats';
import { ofUrls } from '../../src/session/model_source';
import { Runtime } from '../../src/session/runtime';
import { Session } from '../../src/session/session';
import type { TensorOnCpu, TensorOnGpu } from '../../src/wire/values';

interface Job {
  readonly plan: string;
  readonly weights: string;
  readonly core: string;
  readonly provider: string;
  readonly dims: readonly number[];
  readonly data: readonly number[];
}

const job = JSON.parse(readFileSync(process.argv[2], 'utf8')) as Job;
const url = (path: string) => pathToFileURL(path);
const runtime = new Runtime(filesIn(url(job.core)));
const source = ofUrls(url(job.plan).href, url(job.weights).href);
const load = (deviceId: number, options = {}) =>
  Session.load(source, {
    runtime,
    onDevice: job.provider,
    providerOptions: { [job.provider]: { ...options, deviceId } },
  });
const x = { dtype: DType.float32, dims: job.dims, data: new Uint8Array(Float32Array.from(job.data).buffer) };
const floats = ({ data }: TensorOnCpu) => [...new Float32Array(data.slice().buffer)];
const failed = async (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => ({ code: codeOf(error), message: messageOf(error) }),
  );

const [first, second] = [await load(0), await load(1)];
const runs = [];
for (let i = 0; i < 2; i++) {
  const { outputs, info } = await first.run({ x });
  runs.push({ y: floats(outputs.y as TensorOnCpu), replayed: info.replayed, dispatches: info.counters.dispatches });
}
// An output that stays on the device is a feed of the next run.
const left = (await first.run({ x }, { outputsOnGpu: ['y'] })).outputs.y as TensorOnGpu;
const again = (await first.run({ x: left })).outputs.y as TensorOnCpu;
const elsewhere = await failed(second.run({ x: left }));
const { memory } = sessionStats(first);
const capture = await failed(load(0, { enableGraphCapture: true }));
const device = await runtime.devices(job.provider).open(0);
Object.assign(device, { lost: 'it fell' });
const lost = await failed(first.run({ x }));
const other = await failed(second.run({ x }));
console.log(JSON.stringify({ runs, again: floats(again), elsewhere, memory, capture, lost, other }));
process.exit(0);
