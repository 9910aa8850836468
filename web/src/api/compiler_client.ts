// A compile server (`py-ort compile-server`), named by `env.compiler`: from an ONNX file to the URL of its export.
import { ErrorCode, PlanVersion } from '../schema';
import { RuntimeError } from '../errors';
import { host } from '../host';
import { ModelCache } from './cache';
import type { Listener } from './engine';
import type { ModelCompiler } from './env_types';
import { sha256 } from './exported';

interface Told {
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

/** Requests a model and waits until it is compiled. @returns the status of a refusal; undefined if it is there. */
async function ask(url: string, { onProgress, signal }: Listener, body?: Blob): Promise<Told | undefined> {
  const headers = { Accept: 'text/event-stream' };
  const response = await host.fetch(url, { headers, signal, ...(body && { method: 'POST', body }) });
  if (!response.ok) throw refused(response.status, (await response.text()).slice(0, 2000));
  for await (const [kind, told] of eventsOf(response)) {
    if (kind === 'done') return undefined;
    if (kind === 'failed') return told;
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
 * Compiles a model, unless the browser's cache has the result.
 *
 * @param server the server's URL, or a compiler in the page, whose results are not kept.
 * @param model its URL, or its bytes.
 * @returns a URL that leads to the `.pyort` file.
 */
export async function compiledUrl(
  server: string | URL | ModelCompiler,
  model: string | Uint8Array<ArrayBuffer>,
  listener: Listener,
): Promise<string> {
  const { signal } = listener;
  const fetched = async (url: string) => new Uint8Array(await (await host.fetch(url, { signal })).arrayBuffer());
  if (typeof server === 'object' && 'compile' in server) {
    const file = await server.compile(typeof model === 'string' ? await fetched(model) : model, listener);
    return URL.createObjectURL(new Blob([file as Uint8Array<ArrayBuffer>]));
  }
  const base = String(server);
  const at = (name: string, value: string) => {
    const url = new URL('export', host.resolve(base.endsWith('/') ? base : `${base}/`));
    url.search = String(new URLSearchParams({ [name]: value, plan: String(PlanVersion.current) }));
    return url.href;
  };
  let bytes = model;
  const cache = new ModelCache(listener);
  if (typeof bytes === 'string') {
    const url = at('url', bytes);
    if (await cache.kept(url)) return url;
    const fault = await ask(url, listener);
    if (!fault) return url;
    if (!NOT_BY_URL.includes(fault.status!)) throw refused(fault.status, fault.text);
    bytes = await fetched(bytes);
  }
  const url = at('sha256', await sha256(bytes));
  if (await cache.kept(url)) return url;
  let fault = await ask(url, listener);
  if (fault?.status === 404) fault = await ask(url, listener, new Blob([bytes]));
  if (fault) throw refused(fault.status, fault.text);
  return url;
}
