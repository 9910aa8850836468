// Fetches, with errors that contain the server's message. If an answer breaks off, our own server sends the reason in a
// header of the next answer (`py_ort/browser/http_server.py`): the broken answer can no longer contain it.
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import { host } from '../host';

export const FAILURE = 'Py-Ort-Failure';
const LONGEST = 2000;
/** "Too many requests" and "service unavailable": such a server is asked again, after this many milliseconds. */
const BUSY = [429, 503];
const WAITS = [500, 1000, 2000];
/** Milliseconds until an answer begins. A development server compiles models meanwhile. */
const PATIENCE = 300_000;

/** An answer whose status is one of success. */
export async function fetched(
  url: string | URL,
  headers: HeadersInit = {},
  patience: number = PATIENCE,
): Promise<Response> {
  let response: Response;
  for (const waits = [...WAITS]; ; ) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(`no answer in ${patience / 1000} s`), patience);
    try {
      response = await host.fetch(url, { headers, signal: late.signal });
    } catch (error) {
      throw failure(`${url} could not be fetched: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
    const wait = BUSY.includes(response.status) && waits.shift();
    if (!wait) break;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  if (response.ok) return response;
  const isText = response.headers.get('Content-Type')?.startsWith('text/plain');
  const words = isText ? (await response.text().catch(() => '')).slice(0, LONGEST) : '';
  throw failure(`${url} answered ${response.status} ${response.statusText}${words && `: ${words}`}`);
}

/** All bytes of a file. */
export async function fetchedBytes(url: string | URL): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetched(url);
  return new Uint8Array(await response.arrayBuffer().catch((error) => interrupted(url, messageOf(error))));
}

/** Throws what is to be said of an answer that ended too early. @param patience for the server's reason. */
export async function interrupted(url: string | URL, how: string, patience = 10_000): Promise<never> {
  const why = await host.fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(patience) }).then(
    ({ headers }) => headers.get(FAILURE),
    () => null,
  );
  const advice = 'try again, or copy the file again';
  throw failure(`${url} broke off (${how}): ${why ? decodeURIComponent(why) : advice}`);
}

function failure(text: string): RuntimeError {
  return new RuntimeError(ErrorCode.fail, text);
}
