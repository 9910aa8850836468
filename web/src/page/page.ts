// The browser's page: it starts workers and ends them. The runtime lives in them, so this thread has time to answer.
// A runtime for a device that workers lack is in a frame of this page, whose query has "frame".
// Query: port, token; buffers, for the worker that it starts at once, whose token is the page's own with FIRST behind
// it. All others Python asks for. Of a captured browser (captured.ts): capture, or return.
import { AckT, Body, type EndWorkerT, ErrorCode, type OpenWorkerT, PongT } from '../schema';
import { compileCore } from '../core/compiled';
import { type CompiledCore, filesIn } from '../core/files';
import { invalid, messageOf, RuntimeError } from '../errors';
import { host } from '../host';
import type { ReceivedMessage } from '../wire/messages';
import { captureUrl, INTERVAL, returnTo, waitForSession } from './captured';
import { type Answer, Connection } from './connection';

const ACK: Answer = { type: Body.Ack, body: new AckT() };
const RUNTIME = 'worker.js';
const FIRST = '.1';
const FRAME = 'frame';
/** By the token that each connects to Python with. */
const workers = new Map<string, Pick<Worker, 'terminate'>>();
/** For all workers, compiled while the script of the first is on its way; undefined: they do it themselves. */
let core: Promise<CompiledCore | undefined> | undefined;

function compiledCore(): Promise<CompiledCore | undefined> {
  const files = { ...filesIn(self.location.href), likely: 'auto' as const };
  core ??= compileCore(files, host.withoutSharing(true) === undefined).catch(() => undefined);
  return core;
}

function startWorker(url: URL, port: string, token: string, failed: (why: string) => void, again = true): void {
  url.searchParams.set('port', port);
  url.searchParams.set('token', token);
  if (url.pathname.endsWith('.html')) return startFrame(url, token);
  const worker = new Worker(url, { type: 'module' });
  worker.addEventListener('error', ({ message, filename, lineno }) => {
    // A change of the network, or a proxy, makes requests fail.
    if (!message && again) startWorker(url, port, token, failed, false);
    else failed(`${url.pathname} failed: ${message ? `${message} (${filename}:${lineno})` : 'it could not be loaded'}`);
  });
  workers.set(token, worker);
  if (url.pathname.endsWith(`/${RUNTIME}`))
    void compiledCore()
      .then((compiled) => worker.postMessage(compiled))
      .catch(() => worker.postMessage(undefined));
}

/** A runtime in this thread, for devices that the browser's workers lack. */
function startFrame(url: URL, token: string): void {
  url.searchParams.set(FRAME, '');
  const frame = document.createElement('iframe');
  frame.hidden = true;
  frame.src = url.href;
  document.body.append(frame);
  workers.set(token, { terminate: () => frame.remove() });
}

function openWorker(connection: Connection, { script, port, token }: OpenWorkerT): Answer {
  const url = new URL(String(script), self.location.href);
  if (url.origin !== self.location.origin) {
    throw invalid(`a worker of ${url.origin} cannot be opened here`);
  }
  startWorker(url, String(port), String(token), (why) => connection.log(3, 'worker', why));
  return ACK;
}

function endWorker({ token }: EndWorkerT): Answer {
  workers.get(String(token))?.terminate();
  workers.delete(String(token));
  return ACK;
}

function answer(connection: Connection, { type, body }: ReceivedMessage): Answer {
  switch (type) {
    case Body.OpenWorker:
      return openWorker(connection, body as OpenWorkerT);
    case Body.EndWorker:
      return endWorker(body as EndWorkerT);
    case Body.Ping:
      return { type: Body.Pong, body: new PongT(performance.now()) };
    default:
      throw new RuntimeError(
        ErrorCode.not_implemented,
        `the page itself does not answer ${Body[type] ?? `message type ${type}`}`,
      );
  }
}

const query = new URLSearchParams(self.location.search);
const capture = captureUrl(query);

async function start(): Promise<void> {
  if (query.has(FRAME)) return void (await import(new URL(RUNTIME, self.location.href).href));
  if (query.has('capture')) return waitForSession(query.get('port')!, query.get('capture')!);
  // Everything waits for the first worker's script: it is requested first.
  const { search, href } = self.location;
  const failed = (why: string) => void connecting.then((connection) => connection.log(3, 'worker', why));
  startWorker(new URL(`${RUNTIME}${search}`, href), query.get('port')!, `${query.get('token')}${FIRST}`, failed);
  const connecting = Connection.ofQuery((message) => {
    try {
      connection.send(message.id, answer(connection, message));
    } catch (error) {
      connection.sendError(message.id, error);
    }
  });
  const connection = await connecting;
  // Python has ended: the page is not needed any more.
  connection.onClose(() => {
    workers.forEach((worker) => worker.terminate());
    if (capture) void returnTo(capture);
  });
}

start().catch((error: unknown) => {
  console.error(`py_ort: the page could not start: ${messageOf(error)}`);
  // A reloaded page of a session is no longer expected.
  if (capture) void returnTo(capture, INTERVAL);
});
