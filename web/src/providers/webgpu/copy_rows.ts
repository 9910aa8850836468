// Rows of caches from one buffer to another.
import type { Heads } from '../../device/provider';
import type { GpuPlacement } from './segment';

/**
 * Copies the first rows of each head from one buffer to another. Each buffer's number is the rows per head that it has
 * room for.
 */
export function copyRows(
  encoder: GPUCommandEncoder,
  { count, rowBytes }: Heads,
  rows: number,
  [from, fromRoom]: readonly [GpuPlacement, number],
  [to, toRoom]: readonly [GpuPlacement, number],
): void {
  for (let head = 0; head < count; head++) {
    const [source, target] = [from.offset + head * fromRoom * rowBytes, to.offset + head * toRoom * rowBytes];
    encoder.copyBufferToBuffer(from.buffer, source, to.buffer, target, rows * rowBytes);
  }
}
