// The distribution of the work of few rows times weights of few bits: the one place that chooses variants.
import type { DeviceTraits } from '../../../../../contract/kernel';
import type { Shares } from './few_rows';

/** Threads that occupy the memory of a large GPU: an H100's, for layers of Llama 3.2 1B and 3B. */
const WANTED = 65536;
const TEAMS = [16, 32, 64, 128, 256];

/**
 * @param m rows; @param width columns of the result; @param loads of a column; @param gated true if each column is made
 *   from two.
 */
export function sharesOf(m: number, width: number, loads: number, gated: boolean, device: DeviceTraits): Shares {
  const rows = m === 1 ? 1 : 4;
  if (device.software) return { rows, columns: rows === 1 && !gated ? 4 : 1, team: 1, halves: false };
  // Four columns share the part of a row that a thread reads, which is eight times as large as its part of each column.
  const columns = rows === 4 ? 1 : gated ? 2 : 4;
  if (device.maxInvocations < TEAMS[TEAMS.length - 1] || loads <= 8) return { rows, columns, team: 1, halves: true };
  const groups = Math.ceil(width / columns) * Math.ceil(m / rows);
  // Whole teams load neighboring words: with fewer than 16 threads, memory would read words that are not used.
  const team = TEAMS.find((size) => groups * size >= WANTED || 4 * size > loads) ?? TEAMS[TEAMS.length - 1];
  return { rows, columns, team, halves: true };
}
