// The browser's page: it starts workers and ends them, as Python says. The runtime lives in them, so this thread always
// has time to answer. Query: port, token.
import { AckT, Body, type EndWorkerT, ErrorCode, type OpenWorkerT, PongT } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { ReceivedMessage } from '../wire/messages';
import { type Answer, Connection } from './connection';

const ACK: Answer = { type: Body.Ack, body: new AckT() };
/** By the token that each connects to Python with. */
const workers = new Map<string, Worker>();

function openWorker(connection: Connection, { script, port, token }: OpenWorkerT): Answer {
  const url = new URL(String(script), self.location.href);
  if (url.origin !== self.location.origin) {
    throw new RuntimeError(ErrorCode.invalid_argument, `a worker of ${url.origin} cannot be opened here`);
  }
  url.searchParams.set('port', String(port));
  url.searchParams.set('token', String(token));
  const worker = new Worker(url, { type: 'module' });
  worker.addEventListener('error', ({ message, filename, lineno }) => {
    connection.log(
      3,
      'worker',
      `${url.pathname} failed: ${message || 'it could not be loaded'} (${filename}:${lineno})`,
    );
  });
  workers.set(String(token), worker);
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

async function start(): Promise<void> {
  const connection = await Connection.ofQuery((message) => {
    try {
      connection.send(message.id, answer(connection, message));
    } catch (error) {
      connection.sendError(message.id, error);
    }
  });
  // Python is gone: nothing here is of use to anyone else.
  connection.onClose(() => workers.forEach((worker) => worker.terminate()));
}

start().catch((error: unknown) => console.error(`py_ort: the page could not start: ${messageOf(error)}`));
