// Answers that break off or stall on a bad network: the rest is requested again, if the server supports ranges.
import { ByteReader } from './byte_reader';
import { abandon, FAILURE, fetched, interrupted } from './fetching';

/** Milliseconds. */
const PATIENCE = 60_000;

/** The region of an answer in its file, and the signal that ends its download. */
export interface Reading {
  readonly start?: number;
  readonly end?: number;
  readonly signal?: AbortSignal;
}

/** Reads an answer's bytes. If the server supports ranges, the rest of a broken answer is requested again. */
export function readerOf(
  response: Response,
  url: string,
  { start = 0, end, signal }: Reading = {},
  body = response.body!,
): ByteReader {
  const { headers, status } = response;
  const same = headers.get('ETag') ?? headers.get('Last-Modified');
  const knowsRanges = status === 206 || headers.get('Accept-Ranges') === 'bytes';
  let current = response;
  const from = async (position: number) => {
    abandon(current);
    if (!knowsRanges) return undefined;
    const range = { Range: `bytes=${start + position}-${end === undefined ? '' : end - 1}` };
    const rest = same ? { ...range, 'If-Range': same } : range;
    current = await fetched(url, { headers: rest, patience: PATIENCE, signal });
    if (current.status === 206 && !current.headers.has(FAILURE)) return current.body ?? undefined;
    abandon(current);
    return undefined;
  };
  const brokenOff = (how: string) => {
    abandon(current);
    return interrupted(url, how, { signal });
  };
  return new ByteReader(body, brokenOff, {
    patience: PATIENCE,
    signal,
    from,
    get mayBeCut() {
      return !current.headers.has('Content-Length');
    },
  });
}
