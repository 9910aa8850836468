// Answers that break off or stall on a bad network: the rest is requested again, if the server supports ranges.
import { ByteReader } from './byte_reader';
import { FAILURE, fetched, interrupted } from './fetching';

/** Milliseconds. */
const PATIENCE = 60_000;

/** Reads an answer's bytes from `start` on. If the server supports ranges, a broken answer is requested again. */
export function readerOf(response: Response, url: string, body = response.body!, start = 0, end?: number): ByteReader {
  const { headers, status } = response;
  const same = headers.get('ETag') ?? headers.get('Last-Modified');
  const knowsRanges = status === 206 || headers.get('Accept-Ranges') === 'bytes';
  const from = async (position: number) => {
    if (!knowsRanges) return undefined;
    const range = { Range: `bytes=${start + position}-${end === undefined ? '' : end - 1}` };
    const rest = await fetched(url, same ? { ...range, 'If-Range': same } : range, PATIENCE);
    if (rest.status === 206 && !rest.headers.has(FAILURE)) return rest.body ?? undefined;
    void rest.body?.cancel();
    return undefined;
  };
  return new ByteReader(body, (how) => interrupted(url, how), { patience: PATIENCE, from });
}
