// Fetches, with errors that contain the server's message. If an answer breaks off, our own server sends the reason in a
// header of the next answer (`py_ort/browser/http_server.py`): the broken answer can no longer contain it.
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import { host } from '../host';
import { eitherOf, pause } from '../turn';

export const FAILURE = 'Py-Ort-Failure';
const LONGEST = 2000;
/** "Too many requests" and "service unavailable": such a server is asked again, after this many milliseconds. */
const BUSY = [429, 503];
const WAITS = [500, 1000, 2000];
/** The longest wait that a server may ask for. */
const LONGEST_WAIT = 60_000;
/** Milliseconds until an answer begins. A development server compiles models meanwhile. */
const PATIENCE = 300_000;

export interface FetchOptions {
  readonly headers?: HeadersInit;
  readonly patience?: number;
  /** Ends the fetch, also while the answer's body is read. */
  readonly signal?: AbortSignal;
}

/** The ends of fetches, by their answers. */
const ends = new WeakMap<Response, AbortController>();

/** Closes the connection of an answer of `fetched`, which its clones read, too. */
export function abandon(response: Response): void {
  ends.get(response)?.abort();
}

/** An answer whose status is one of success. @throws the signal's reason, when it aborts. */
export async function fetched(
  url: string | URL,
  { headers, patience = PATIENCE, signal }: FetchOptions = {},
): Promise<Response> {
  let response: Response;
  for (const waits = [...WAITS]; ; ) {
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(`no answer in ${patience / 1000} s`), patience);
    try {
      response = await host.fetch(url, { headers, signal: eitherOf(signal, end.signal) });
    } catch (error) {
      signal?.throwIfAborted();
      throw failure(`${url} could not be fetched: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
    ends.set(response, end);
    const least = BUSY.includes(response.status) ? waits.shift() : undefined;
    if (least === undefined) break;
    const wait = Math.max(least, retryAfter(response));
    if (wait > LONGEST_WAIT) break;
    abandon(response);
    await pause(wait, signal);
  }
  if (response.ok) return response;
  const isText = response.headers.get('Content-Type')?.startsWith('text/plain');
  const words = isText ? (await response.text().catch(() => '')).slice(0, LONGEST) : '';
  const wait = retryAfter(response);
  const later = wait > 0 ? ` (try again in ${Math.ceil(wait / 1000)} s)` : '';
  throw failure(`${url} answered ${response.status} ${response.statusText}${later}${words && `: ${words}`}`);
}

/** Milliseconds that the server asks to wait: it gives seconds, or a date. */
function retryAfter({ headers }: Response): number {
  const given = headers.get('Retry-After') ?? '';
  const wait = /^\d+$/.test(given) ? 1000 * Number(given) : Date.parse(given) - Date.now();
  return Math.max(wait, 0) || 0;
}

/** All bytes of a file. */
export async function fetchedBytes(url: string | URL, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetched(url, { signal });
  return new Uint8Array(await response.arrayBuffer().catch((error) => interrupted(url, messageOf(error), { signal })));
}

/** Throws the error of an answer that ended too early, with the server's reason if the server sends one. */
export async function interrupted(
  url: string | URL,
  how: string,
  { patience = 10_000, signal }: FetchOptions = {},
): Promise<never> {
  signal?.throwIfAborted();
  const why = await host.fetch(url, { method: 'HEAD', signal: eitherOf(signal, AbortSignal.timeout(patience)) }).then(
    ({ headers }) => headers.get(FAILURE),
    () => null,
  );
  signal?.throwIfAborted();
  const advice = 'try again, or copy the file again';
  throw failure(`${url} broke off (${how}): ${why ? decodeURIComponent(why) : advice}`);
}

function failure(text: string): RuntimeError {
  return new RuntimeError(ErrorCode.fail, text);
}
