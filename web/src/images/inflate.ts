// Inflates bytes, by the browser (or Node) itself.
import { damaged } from './picture';

/** Inflates `parts` (zlib's format) to exactly `size` bytes. */
export async function inflate(format: string, parts: readonly Uint8Array[], size: number): Promise<Uint8Array> {
  const out = new Uint8Array(size);
  let filled = 0;
  const stream = new Blob([...parts] as BlobPart[]).stream().pipeThrough(new DecompressionStream('deflate'));
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (filled + value.length > size) throw new RangeError(`its data are more than ${size} bytes when inflated`);
      out.set(value, filled);
      filled += value.length;
    }
  } catch (error) {
    reader.cancel().catch(() => undefined);
    throw damaged(format, (error as Error).message || 'its data cannot be inflated');
  }
  if (filled < size) throw damaged(format, `its data are ${filled} bytes, not ${size}`);
  return out;
}
