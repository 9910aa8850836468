// Node in a browser's place: files, worker_threads, and WebGPU by the npm package `webgpu` (Dawn), if it is installed.
import { open } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import type { Host } from '../host';
import { NodeWorker } from './worker';

/** The package's name, in a variable: bundlers need not find what is optional. */
const DAWN = 'webgpu';

interface Dawn {
  readonly globals: object;
  create(options: readonly string[]): GPU;
}

let gpu: Promise<GPU | string> | undefined;

async function openDawn(): Promise<GPU | string> {
  const given = (globalThis.navigator as Navigator | undefined)?.gpu;
  if (given) return given;
  try {
    const { create, globals } = (await import(DAWN)) as Dawn;
    // GPUBufferUsage and the like, which are global in browsers.
    for (const [name, value] of Object.entries(globals))
      if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    return create([]);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return `Node has no WebGPU, and the npm package webgpu is not to be had (npm install webgpu): ${why}`;
  }
}

/** A file as a server would give it, ranges included. */
async function fetchFile(url: URL, init: RequestInit = {}): Promise<Response> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(url);
  } catch (error) {
    return new Response((error as Error).message, {
      status: 404,
      statusText: 'Not Found',
      headers: { 'Content-Type': 'text/plain' },
    });
  }
  const { size } = await file.stat();
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(new Headers(init.headers).get('Range') ?? '') ?? [];
  const start = Number(from ?? 0);
  const end = Math.min(size, to ? Number(to) + 1 : size);
  const headers = { 'Accept-Ranges': 'bytes', 'Content-Length': String(Math.max(end - start, 0)) };
  if (init.method === 'HEAD' || end <= start) {
    await file.close();
    return new Response(null, { headers });
  }
  const stream = file.createReadStream({ start, end: end - 1, highWaterMark: 1 << 20 });
  const body = Readable.toWeb(stream) as unknown as ReadableStream<Uint8Array>;
  return new Response(body, { status: from === undefined ? 200 : 206, headers });
}

export const node: Host = {
  cores: availableParallelism(),
  resolve: (file) => (/^[a-z][a-z+.-]+:/i.test(file) ? new URL(file).href : pathToFileURL(file).href),
  async fetch(given, init) {
    const url = new URL(given);
    return url.protocol === 'file:' ? fetchFile(url, init) : fetch(url, init);
  },
  startWorker: (url, name) => new NodeWorker(url, name),
  withoutProxy: (asked) => (asked ? undefined : 'that is the way of Node: env.wasm.proxy = true asks for a worker'),
  withoutSharing: () => undefined,
  gpu: () => (gpu ??= openDawn()),
  /** Dawn's binding ends the process on memory that is shared. */
  forQueue: (bytes) => (bytes.buffer instanceof SharedArrayBuffer ? bytes.slice() : bytes),
};
