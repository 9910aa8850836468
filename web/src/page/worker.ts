// The dedicated worker, or a frame of the page: a websocket to Python, and the runtime behind it. Query: port, token,
// and the number of its first GPU buffer.
import { type CompiledCore, filesIn } from '../core/files';
import { messageOf } from '../errors';
import { firstBufferId } from '../device/buffers';
import { Runtime } from '../session/runtime';
import { Connection } from './connection';
import { fetchThroughGateway } from './gateway';
import { Requests } from './requests';

/** The core that the page compiled; undefined if that failed, if it cannot be sent, or in a frame. */
const compiled =
  typeof document === 'undefined'
    ? new Promise<CompiledCore | undefined>((resolve) => {
        self.addEventListener('message', ({ data }: MessageEvent<CompiledCore | undefined>) => resolve(data));
        self.addEventListener('messageerror', () => resolve(undefined));
      })
    : undefined;

/** Sends text written to the console to Python too. */
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
  const runtime = new Runtime({ ...filesIn(import.meta.url), compiled });
  // The core loads while this connects and Python compiles its model; its users receive a failure.
  runtime.core().catch(() => undefined);
  // Messages arrive only after Hello, so `requests` is set by then.
  let requests: Requests | undefined;
  const connection = await Connection.ofQuery((message) => requests!.handle(message));
  forwardConsole(connection);
  requests = new Requests(connection, runtime);
  // Python has ended: the worker is not needed any more.
  connection.onClose(() => self.close());
}

start().catch((error: unknown) => console.error(`py_ort: the worker could not start: ${messageOf(error)}`));
