// The dedicated worker: a websocket to Python, and the runtime behind it. Query: port, token, and the number of its
// first GPU buffer.
import { messageOf } from '../errors';
import { firstBufferId } from '../gpu/buffers';
import { Connection } from './connection';
import { fetchThroughGateway } from './gateway';
import { Requests } from './requests';

/** What is written to the console goes to Python too. */
function forwardConsole(connection: Connection): void {
  for (const [method, severity] of [
    ['debug', 0],
    ['log', 0],
    ['info', 1],
    ['warn', 2],
    ['error', 3],
  ] as const) {
    const original = console[method].bind(console);
    console[method] = (...args: unknown[]) => {
      original(...args);
      connection.log(
        severity,
        'console',
        args.map((arg) => (arg instanceof Error ? (arg.stack ?? arg.message) : String(arg))).join(' '),
      );
    };
  }
  self.addEventListener('error', ({ message, filename, lineno }) =>
    connection.log(4, 'worker', `${message} (${filename}:${lineno})`),
  );
  self.addEventListener('unhandledrejection', ({ reason }) => {
    connection.log(
      4,
      'worker',
      `unhandled: ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`,
    );
  });
}

async function start(): Promise<void> {
  fetchThroughGateway();
  firstBufferId(Number(new URLSearchParams(self.location.search).get('buffers') ?? 1));
  // Messages can only come after Hello, so `requests` is there by then.
  let requests: Requests | undefined;
  const connection = await Connection.ofQuery((message) => requests!.handle(message));
  forwardConsole(connection);
  requests = new Requests(connection);
  // Python is gone: nothing here is of use to anyone else.
  connection.onClose(() => self.close());
}

start().catch((error: unknown) => console.error(`py_ort: the worker could not start: ${messageOf(error)}`));
