// Loads plans in Node and runs them on a GPU that computes nothing, to find the memory that sessions plan, and their
// pipelines.
//   node main.mjs JOBS.json ANSWERS.json; jobs: a list of {plan, weights, core, software, f16, runs, feeds: {name:
//   {dtype, dims}}}; answers: each job's result, or {error}.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { cpuElementSize, dtypeOf, elementCount } from '../../src/contract/elements';
import type { DTypeName } from '../../src/contract/kernel';
import { sessionStats } from '../../src/page/stats';
import { filesIn } from '../../src/core/files';
import { Runtime } from '../../src/session/runtime';
import { ofUrls } from '../../src/session/model_source';
import { Session } from '../../src/session/session';
import type { GpuProvider } from '../../src/providers/webgpu/provider';
import { installFakeGpu } from './gpu';

interface Job {
  readonly plan: string;
  readonly weights: string;
  readonly core: string;
  readonly software: boolean;
  readonly f16?: boolean;
  readonly runs?: number;
  readonly feeds: { readonly [name: string]: { readonly dtype: DTypeName; readonly dims: readonly number[] } };
}

const { fetch } = globalThis;
globalThis.fetch = (async (url: string | URL, options?: RequestInit) => {
  if (!String(url).startsWith('file:')) return fetch(url, options);
  const bytes = readFileSync(new URL(url));
  const range = /bytes=(\d+)-(\d+)/.exec((options?.headers as Record<string, string>)?.Range ?? '');
  if (range) return new Response(bytes.subarray(Number(range[1]), Number(range[2]) + 1), { status: 206 });
  return new Response(bytes, { headers: { 'content-type': 'application/wasm' } });
}) as typeof fetch;

const url = (path: string): URL => pathToFileURL(path);

async function tell({ plan, weights, core, software, f16, feeds, runs = 2 }: Job) {
  installFakeGpu({ software, f16 });
  const runtime = new Runtime(filesIn(url(core)));
  const session = await Session.load(ofUrls(url(plan).href, url(weights).href), { runtime });
  const zeros = Object.fromEntries(
    Object.entries(feeds).map(([name, { dtype, dims }]) => {
      const type = dtypeOf(dtype);
      return [name, { dtype: type, dims, data: new Uint8Array(elementCount(dims) * cpuElementSize(type)!) }];
    }),
  );
  const infos = [];
  for (let i = 0; i < runs; i++) infos.push((await session.run(zeros)).info);
  const { memory } = sessionStats(session);
  const pipelines = (session.provider as GpuProvider | undefined)?.pipelines.list().map(({ key }) => key) ?? [];
  const told = { memory, pipelines, create: session.info, runs: infos };
  await session.release();
  return told;
}

const answers = [];
for (const job of JSON.parse(readFileSync(process.argv[2], 'utf8')) as Job[]) {
  try {
    answers.push(await tell(job));
  } catch (error) {
    answers.push({ error: (error as Error).stack ?? String(error) });
  }
}
writeFileSync(process.argv[3], JSON.stringify(answers));
// The devices are never lost, for which Node would wait.
process.exit(0);
