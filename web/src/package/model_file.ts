// A model's file, from any source: read once, from its beginning to its end.
import { ErrorCode } from '../schema';
import { RuntimeError, shortened } from '../errors';
import { host } from '../host';
import { ByteReader } from '../wire/byte_reader';
import { fetched } from '../wire/fetching';
import { readerOf } from '../wire/resuming';
import { type ModelFile, noModel } from './model_kinds';

export interface OpenedFile {
  /** A description, for errors. */
  readonly what: string;
  readonly reader: ByteReader;
  /** The URL from which ranges are available, if they are. */
  readonly ranges: string | undefined;
  /** Ends its download. */
  readonly signal?: AbortSignal;
}

/** Fetches a model. With this header a development server sends it compiled (`py_ort/serving`). */
export const fetchedModel = (url: string, signal?: AbortSignal) =>
  fetched(url, { headers: { Accept: 'application/x-pyort, */*;q=0.8' }, signal });

/** Opens a file. @param fetchFile fetches a URL; with another function than the default, no ranges are requested. */
export async function openFile(file: ModelFile, signal?: AbortSignal, fetchFile = fetchedModel): Promise<OpenedFile> {
  if (typeof file === 'string' || file instanceof URL) {
    const url = host.resolve(String(file));
    const response = await fetchFile(url, signal);
    const stream = response.body ?? new Blob([await response.arrayBuffer()]).stream();
    // The final URL: further files are next to it.
    const found = response.url || url;
    const hasRanges = fetchFile === fetchedModel && response.headers.get('Accept-Ranges') === 'bytes';
    const ranges = hasRanges ? found : undefined;
    const what = found.startsWith('data:') ? shortened(found) : found;
    return { what, reader: readerOf(response, found, { signal }, stream), ranges, signal };
  }
  if (file instanceof ArrayBuffer || file instanceof Uint8Array || file instanceof Blob) {
    const blob = file instanceof Blob ? file : new Blob([file as Uint8Array<ArrayBuffer>]);
    const brokenOff = async (how: string) => {
      throw new RuntimeError(ErrorCode.invalid_graph, `the model is cut off: ${how}. Give all bytes of its file`);
    };
    return { what: 'the model', reader: new ByteReader(blob.stream(), brokenOff), ranges: undefined };
  }
  throw noModel(file);
}

const scopes = new WeakMap<object, string>();
let unnamed = 0;

/** The origin of a file, for trust: its folder on the network, or itself. */
export function scopeOf(file: ModelFile): string {
  if (typeof file === 'string' || file instanceof URL) {
    const url = host.resolve(String(file));
    return /^(https?|file):/.test(url) ? new URL('.', url).href : `${++unnamed}`;
  }
  const scope = scopes.get(file) ?? `${++unnamed}`;
  scopes.set(file, scope);
  return scope;
}
