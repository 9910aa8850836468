// Models in the browser's Cache API, if the user enables it.
import { fetchedModel } from '../package/model_file';

/** The name of the cache: `caches.delete('py_ort')` forgets all models. */
const CACHE = 'py_ort';

/**
 * The answer at a URL, kept from its first fetch on. A model that changes needs another URL, or a server that sends
 * "no-store".
 */
export async function fetchedOnce(url: string, signal?: AbortSignal): Promise<Response> {
  return (await kept(url)) ?? fetchedAnew(url, signal);
}

/** Returns the cache's copy of a URL; undefined if there is none. */
export async function kept(url: string): Promise<Response | undefined> {
  return (await opened())?.match(url);
}

/** The same, fetched again because the kept answer is unusable: for another version of the runtime, for example. */
export async function fetchedAnew(url: string, signal?: AbortSignal): Promise<Response> {
  const cache = await opened();
  const response = await fetchedModel(url, signal);
  if (!cache || /\bno-store\b/.test(response.headers.get('Cache-Control') ?? '')) return response;
  const copy = response.clone();
  // Without room it is fetched each time; an answer that broke off is not kept.
  void cache.put(url, copy).catch(() => cache.delete(url).catch(() => false));
  return response;
}

/** Undefined in a page that is not a secure context, or may store nothing, as in a sandboxed frame. */
async function opened(): Promise<Cache | undefined> {
  try {
    return await globalThis.caches?.open(CACHE);
  } catch {
    return undefined;
  }
}
