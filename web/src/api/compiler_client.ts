// A compile server (`py-ort compile-server`), named by `env.compiler`: from an ONNX file to the URL of its export.
import { ErrorCode, PlanVersion } from '../schema';
import { messageOf, RuntimeError, shortened } from '../errors';
import { host } from '../host';
import { ModelCache } from './cache';
import type { Listener } from './engine';
import type { ModelCompiler } from './env_types';
import { sha256 } from './exported';

interface Told {
  readonly url?: string;
  readonly stage?: string;
  readonly done?: number;
  readonly total?: number;
  readonly status?: number;
  readonly text?: string;
}

const refused = (status: number | undefined, text: string | undefined) =>
  new RuntimeError(ErrorCode.fail, `env.compiler answered ${status}: ${text}`);

/** The events of an answer, as they arrive: each has a name and JSON. */
async function* eventsOf(response: Response): AsyncGenerator<[string, Told]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (rest + value).split('\n\n');
    rest = whole.pop()!;
    for (const text of whole) {
      const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(text) ?? [];
      if (kind) yield [kind, JSON.parse(data)];
    }
  }
}

/** The text of an answer; of a page, which another server than a compile server sends, the first words. */
function wordsOf(text: string): string {
  if (!/^\s*<(!doctype|html)/i.test(text)) return text;
  const words = text.replace(/<(style|script)\b.*?<\/\1>|<[^>]*>/gis, ' ').replace(/\s+/g, ' ');
  return `a page, "${shortened(words.trim(), 80)}": is it the URL of a compile server?`;
}

/** Requests a model and waits until it is compiled. @returns the exported model's path, or the status of a refusal. */
async function ask(url: string, { onProgress, signal }: Listener, body?: Blob): Promise<Told> {
  const headers = { Accept: 'text/event-stream' };
  const response = await host.fetch(url, { headers, signal, ...(body && { method: 'POST', body }) });
  if (!response.ok) throw refused(response.status, shortened(wordsOf(await response.text()), 2000));
  for await (const [kind, told] of eventsOf(response)) {
    if (kind !== 'progress') return told;
    onProgress?.(told.stage!, told.done!, told.total!);
  }
  throw new RuntimeError(
    ErrorCode.fail,
    'env.compiler: the answer ended before the model was compiled: create the session again',
  );
}

/** The statuses of a server that does not fetch this URL, or cannot: it may be the page's alone. */
const NOT_BY_URL = [403, 502];

/**
 * Requests the export of the model at a URL. The server compares the model with the one that it knows. The export's URL
 * names the model's contents, so the browser's cache may have it.
 */
async function exportOf(
  asked: string,
  base: URL,
  cache: ModelCache | undefined,
  listener: Listener,
): Promise<string | Told> {
  let told: Told;
  try {
    told = await ask(asked, listener);
  } catch (error) {
    const last = error instanceof TypeError ? await cache?.noted(asked) : undefined;
    if (last === undefined) throw error;
    listener.log(2, 'session', `env.compiler cannot be reached (${messageOf(error)}): its last result is used`);
    return last;
  }
  if (told.url === undefined) return told;
  const found = new URL(told.url.replace(/^\//, ''), base).href;
  await cache?.noteOnly(asked, found);
  return found;
}

/**
 * Compiles a model, unless the browser's cache has the result.
 *
 * @param server the server's URL, or a compiler in the page, whose results are not kept.
 * @param model its URL, or its bytes.
 * @param useCache false to neither use nor keep what is in the browser's cache.
 * @returns a URL that leads to the `.pyort` file.
 */
export async function compiledUrl(
  server: string | URL | ModelCompiler,
  model: string | Uint8Array<ArrayBuffer>,
  useCache: boolean,
  listener: Listener,
): Promise<string> {
  const { signal } = listener;
  const fetched = async (url: string) => {
    // Revalidated: the HTTP cache may have an older model.
    const response = await host.fetch(url, { signal, cache: 'no-cache' });
    if (!response.ok) throw new RuntimeError(ErrorCode.fail, `${url} answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  };
  if (typeof server === 'object' && 'compile' in server) {
    const file = await server.compile(typeof model === 'string' ? await fetched(model) : model, listener);
    return URL.createObjectURL(new Blob([file as Uint8Array<ArrayBuffer>]));
  }
  const base = new URL(host.resolve(String(server).replace(/\/?$/, '/')));
  const at = (name: string, value: string) => {
    const url = new URL('export', base);
    url.search = String(new URLSearchParams({ [name]: value, plan: String(PlanVersion.current) }));
    return url.href;
  };
  let bytes = model;
  const cache = useCache ? new ModelCache(listener) : undefined;
  if (typeof bytes === 'string') {
    const found = await exportOf(at('url', bytes), base, cache, listener);
    if (typeof found === 'string') return found;
    if (!NOT_BY_URL.includes(found.status!)) throw refused(found.status, found.text);
    bytes = await fetched(bytes);
  }
  const url = at('sha256', await sha256(bytes));
  if (await cache?.kept(url)) return url;
  let told = await ask(url, listener);
  if (told.status === 404) told = await ask(url, listener, new Blob([bytes]));
  if (told.url === undefined) throw refused(told.status, told.text);
  return url;
}
