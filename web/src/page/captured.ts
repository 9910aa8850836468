// A browser that opened the URL of py_ort/browser/captured.py, ?port=PORT&capture=TOKEN: the page waits there until
// Python names the page of a session. The session's page has a token, too, and returns to the URL when it has ended.
import { AckT, Body, ErrorCode, type OpenWorkerT, PongT } from '../schema';
import { invalid, RuntimeError } from '../errors';
import { Connection } from './connection';

const WAITING = 'Captured: this page runs what py_ort asks for. Keep it open.';
const OUT_OF_REACH = 'Python has ended, or is out of reach. This page asks for it every second.';
/** The parameters of a session's page. */
const OF_SESSION = ['token', 'buffers'];
/** Milliseconds between two attempts to reach Python. */
export const INTERVAL = 1000;

function say(text: string): void {
  document.querySelector('p')!.textContent = text;
}

function openPage(script: string): void {
  const url = new URL(script, self.location.href);
  if (url.origin !== self.location.origin) throw invalid(`a page of ${url.origin} cannot be opened here`);
  self.location.replace(url);
}

/** Returns to the URL that captures the browser, after a pause in milliseconds, as soon as Python serves it. */
export async function returnToCapture(pause = 0): Promise<void> {
  const url = new URL(self.location.href);
  for (const name of OF_SESSION) url.searchParams.delete(name);
  for (; ; pause = INTERVAL) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    const answers = await fetch(url, { method: 'HEAD', cache: 'no-store' }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers) return self.location.replace(url);
    say(OUT_OF_REACH);
  }
}

/** Waits for a session's page to open. */
export async function waitForSession(port: string, token: string): Promise<void> {
  let leaving = false;
  const connection = await Connection.open(port, token, ({ id, type, body }) => {
    try {
      if (type === Body.OpenWorker) {
        connection.send(id, { type: Body.Ack, body: new AckT() });
        openPage(String((body as OpenWorkerT).script));
        leaving = true;
      } else if (type === Body.Ping) {
        connection.send(id, { type: Body.Pong, body: new PongT(performance.now()) });
      } else {
        throw new RuntimeError(ErrorCode.not_implemented, `a captured page does not answer ${Body[type]}`);
      }
    } catch (error) {
      connection.sendError(id, error);
    }
  });
  say(WAITING);
  connection.onClose(() => {
    if (!leaving) void returnToCapture();
  });
}
