// Models kept by the browser's Cache API, for those who ask for it.
import { fetchedModel } from '../package/model_file';

/** The name of the cache: `caches.delete('py_ort')` forgets all models. */
const CACHE = 'py_ort';

/**
 * What is at a URL: as it was when it was first fetched, from then on. A model that changes needs another URL, or a
 * server that says "no-store".
 */
export async function fetchedOnce(url: string): Promise<Response> {
  return (await kept(url)) ?? fetchedAnew(url);
}

/** Returns the cache's copy of a URL; undefined if there is none. */
export async function kept(url: string): Promise<Response | undefined> {
  return (await opened())?.match(url);
}

/** The same, where what is kept is of no use: of another version of the runtime, say. */
export async function fetchedAnew(url: string): Promise<Response> {
  const cache = await opened();
  const response = await fetchedModel(url);
  if (!cache || /\bno-store\b/.test(response.headers.get('Cache-Control') ?? '')) return response;
  const copy = response.clone();
  // Without room it is fetched each time; what broke off is not kept.
  void cache.put(url, copy).catch(() => cache.delete(url).catch(() => false));
  return response;
}

/** None in a page that is no secure context, or may store nothing, as in a sandboxed frame. */
async function opened(): Promise<Cache | undefined> {
  try {
    return await globalThis.caches?.open(CACHE);
  } catch {
    return undefined;
  }
}
