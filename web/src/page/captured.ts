// A browser that opened the URL of py_ort/browser/captured.py, ?port=PORT&capture=TOKEN: the page waits there until
// Python names a session's page. The session's page has that URL as its parameter `return`, and returns when it has
// ended.
import { AckT, Body, ErrorCode, type OpenWorkerT, PongT } from '../schema';
import { invalid, RuntimeError } from '../errors';
import { Connection } from './connection';

const WAITING = 'Captured: this page runs what py_ort asks for. Keep it open.';
const OUT_OF_REACH = 'Python has ended, or is out of reach. This page asks for it every second.';
/** Milliseconds between two attempts to reach Python. */
export const INTERVAL = 1000;

function say(text: string): void {
  document.querySelector('p')!.textContent = text;
}

/** A URL of this machine, or of the page's: another process of py_ort may serve it. */
function ofPython(text: string): URL {
  const url = new URL(text, self.location.href);
  const { protocol, hostname } = self.location;
  if (url.protocol !== protocol || url.hostname !== hostname)
    throw invalid(`a page of ${url.origin} cannot be opened here`);
  return url;
}

/** The URL to which a session's page of a captured browser returns. */
export function captureUrl(query: URLSearchParams): string | null {
  return query.get('return') ?? (query.has('capture') ? self.location.href : null);
}

/** Returns to the URL that captures the browser, after a pause in milliseconds, as soon as Python serves it. */
export async function returnTo(capture: string, pause = 0): Promise<void> {
  const url = ofPython(capture);
  for (; ; pause = INTERVAL) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    // The page of another process cannot be fetched from here. That process outlives this page's.
    const answers =
      url.origin !== self.location.origin ||
      (await fetch(url, { method: 'HEAD', cache: 'no-store' }).then(
        ({ ok }) => ok,
        () => false,
      ));
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
        self.location.replace(ofPython(String((body as OpenWorkerT).script)));
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
    if (!leaving) void returnTo(self.location.href);
  });
}
