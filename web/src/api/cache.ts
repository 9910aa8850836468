// Models in the browser's Cache API, if the user enables it.
import { invalid, messageOf } from '../errors';
import { fetchedModel } from '../package/model_file';
import type { Listener } from './engine';
import { warnOnce } from './warnings';

/** The name of the cache: `caches.delete('py_ort')` forgets all models. */
const CACHE = 'py_ort';

/** The browser's cache, for one creation of a session. After a refusal, which is a warning, it does nothing. */
export class ModelCache {
  /** True once a file was found. */
  hit = false;
  private refused = false;

  constructor(private readonly listener: Pick<Listener, 'log'>) {}

  /**
   * The answer at a URL, kept from its first fetch on. A model that changes needs another URL, or a server that sends
   * "no-store".
   */
  readonly fetchedOnce = async (url: string, signal?: AbortSignal): Promise<Response> =>
    (await this.kept(url)) ?? this.fetchedAnew(url, signal);

  /** The cache's copy of an answer, if there is one. */
  async kept(url: string): Promise<Response | undefined> {
    const found = await this.tried((cache) => cache.match(url));
    this.hit ||= found !== undefined;
    return found;
  }

  /** The same, fetched again because the kept answer is unusable: for another version of the runtime, for example. */
  readonly fetchedAnew = async (url: string, signal?: AbortSignal): Promise<Response> => {
    const response = await fetchedModel(url, signal);
    if (/\bno-store\b/.test(response.headers.get('Cache-Control') ?? '')) return response;
    const copy = response.clone();
    void this.tried(async (cache) => {
      await cache.put(url, copy).catch(async (error: unknown) => {
        await cache.delete(url);
        // An answer that broke off is a TypeError: it is not kept, and the next one may be.
        if (!signal?.aborted && !(error instanceof TypeError)) throw error;
      });
    }).finally(() => copy.body?.cancel().catch(() => undefined)); // unread, it would gather all bytes
    return response;
  };

  /** The model's URL that was noted for another one, if the cache has the model. */
  async noted(url: string): Promise<string | undefined> {
    const model = (await this.kept(url))?.headers.get('Location');
    return model && (await this.kept(model)) ? model : undefined;
  }

  /** Notes that a URL leads to a model's URL, and deletes the model to which it led before. */
  async noteOnly(url: string, model: string): Promise<void> {
    const before = await this.noted(url);
    if (before === model) return;
    await this.tried(async (cache) => {
      if (before !== undefined) await cache.delete(before);
      await cache.put(url, new Response(null, { headers: { Location: model } }));
    });
  }

  private async tried<T>(work: (cache: Cache) => Promise<T>): Promise<T | undefined> {
    if (this.refused) return undefined;
    try {
      if (!globalThis.caches) throw invalid('it needs a page served by https, or from this machine');
      return await work(await globalThis.caches.open(CACHE));
    } catch (error) {
      const text = `the browser's cache keeps no models here, which are fetched each time: ${messageOf(error)}`;
      this.refused = true;
      warnOnce(this.listener, text);
      return undefined;
    }
  }
}
