// Answers that break off or stall on a bad network: the rest is asked for, where the server knows ranges.
import { ByteReader } from './byte_reader';
import { FAILURE, fetched, interrupted } from './fetching';

/** Milliseconds. */
const PATIENCE = 60_000;

/** Reads an answer of bytes from `start` on; where the server knows ranges, one that breaks off is asked for again. */
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
