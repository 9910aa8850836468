// Fetches a large file in chunks: four ranges at once, with BYOB readers. This was the fastest way in measurements, in
// every browser.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { fetched } from './fetching';
import { eitherOf } from '../turn';
import { readerOf } from './resuming';

const RANGES = 4;
const LEAST = 1 << 20;
/** Ranges closer together than this are fetched as one. */
const NEAR = 64 << 10;
/** Ranges, and therefore chunks, start at multiples of this. */
const ALIGNMENT = 64;

/** Receives each chunk once, in any order; the bytes are valid until it returns. Offsets are multiples of 64. */
export type TakeChunk = (offset: number, bytes: Uint8Array) => void;

export interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * Fetches the ranges `wanted`, which are in order of their starts and may overlap. The bytes between two close ranges
 * are included. When one range fails, the fetches of the others end.
 */
export async function downloadChunks(
  url: string,
  size: number,
  wanted: readonly Range[],
  take: TakeChunk,
  signal?: AbortSignal,
): Promise<void> {
  const [first, ...others] = requests(wanted, size);
  if (!first) return;
  const failed = new AbortController();
  const source = { url, size, signal: eitherOf(signal, failed.signal) };
  try {
    const response = await open(source, first);
    // A server without ranges sends the whole file.
    if (response.status === 200) return await read(response, source, { start: 0, end: size }, take);
    const waiting = [...others];
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift())
        await read(await open(source, next), source, next, take);
    };
    await Promise.all([read(response, source, first, take).then(work), ...Array.from({ length: RANGES - 1 }, work)]);
  } catch (error) {
    failed.abort(error);
    throw error;
  }
}

/** One request for each run of ranges, and several for a long one. */
function requests(wanted: readonly Range[], size: number): Range[] {
  const runs: { start: number; end: number }[] = [];
  for (const { start, end } of wanted) {
    const last = runs[runs.length - 1];
    if (last && start <= last.end + NEAR) last.end = Math.max(last.end, end);
    else runs.push({ start: Math.floor(start / ALIGNMENT) * ALIGNMENT, end });
  }
  const total = runs.reduce((sum, { start, end }) => sum + end - start, 0);
  const step = Math.max(LEAST, Math.ceil(total / RANGES / ALIGNMENT) * ALIGNMENT);
  return runs.flatMap(({ start, end }) =>
    Array.from({ length: Math.ceil((end - start) / step) }, (_, i) => ({
      start: start + i * step,
      end: Math.min(size, end, start + (i + 1) * step),
    })),
  );
}

interface Source {
  readonly url: string;
  readonly size: number;
  readonly signal: AbortSignal;
}

async function open({ url, size, signal }: Source, { start, end }: Range): Promise<Response> {
  const headers = start === 0 && end === size ? undefined : { Range: `bytes=${start}-${end - 1}` };
  const response = await fetched(url, { headers, signal });
  if (start > 0 && response.status !== 206) {
    throw new RuntimeError(
      ErrorCode.fail,
      `${url}: the server answered a Range request with status ${response.status}, not 206: it must support ranges`,
    );
  }
  return response;
}

async function read(response: Response, source: Source, { start, end }: Range, take: TakeChunk): Promise<void> {
  const stream = response.body ?? new Blob([await response.arrayBuffer()]).stream();
  const reader = readerOf(response, source.url, { start, end, signal: source.signal }, stream);
  await reader.each(end - start, (offset, bytes) => take(start + offset, bytes));
}
