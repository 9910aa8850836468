// The time of products on a software adapter, and the fastest tile: a rough model, with figures measured on
// SwiftShader.
import type { DeviceTraits } from '../../../../../contract/kernel';

/** Threads of a workgroup; a multiple of the subgroup's size on all known software adapters (4 and 8). */
export const SOFTWARE_THREADS = 8;

/**
 * Nanoseconds of a processor, for one thread: a load of a vec4, and of 4 rows of b that a subgroup shares; a matrix of
 * 4x4 times a vector.
 */
const LOAD = 10;
const SHARED_ROWS = 18;
const MATRIX_TIMES_VECTOR = 7;
/** Computing the place of a row's pixel under a tap of the window. */
const PIXEL = 46;

/** Rows, and groups of 4 columns, of a thread. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
}

/** Nanoseconds that a thread takes for a step of 4 in k; `shares`: its subgroup loads b together. */
export function stepCost({ rows, columns }: Tile, shares: boolean): number {
  return rows * LOAD + columns * (shares ? SHARED_ROWS : 4 * LOAD) + rows * columns * MATRIX_TIMES_VECTOR;
}

export interface SoftwareTile extends Tile {
  /** Neighboring threads have neighboring rows (and share b), or neighboring columns. */
  readonly along: 'rows' | 'columns';
  /** All threads that run, including idle ones. */
  readonly threads: number;
  /** Nanoseconds of a step of 4 in k, for all threads. */
  readonly cost: number;
}

/** Nanoseconds of a product over windows of this number of taps. */
export function windowsCost({ rows, threads, cost }: SoftwareTile, taps: number, channels: number): number {
  return taps * (Math.ceil(channels / 4) * cost + threads * rows * PIXEL);
}

type Shape = Pick<SoftwareTile, 'rows' | 'columns' | 'along'>;

/** All tiles; `compact`: prefer few shaders. */
export function softwareTiles(compact: boolean): readonly Shape[] {
  // Each is a shader to compile. Wider ones are a little faster, and compile three times as long.
  const along = (compact ? [4, 2] : [4, 3, 2, 1]).map((columns) => ({ rows: 8, columns, along: 'rows' as const }));
  const across = [1, 4].flatMap((rows) =>
    (compact ? [1] : [4, 1]).map((columns) => ({ rows, columns, along: 'columns' as const })),
  );
  return [...along, ...across];
}

/** Its name in tables. */
export function softwareTileName({ rows, columns, along }: Shape): string {
  return `${rows}x${4 * columns}_${along}`;
}

/** The tile of that name, otherwise the fastest one, for a product of m rows and n columns. */
export function softwareTile(
  { m, n }: { readonly m: number; readonly n: number },
  compact: boolean,
  { subgroups }: Pick<DeviceTraits, 'subgroups'>,
  name?: string,
): SoftwareTile {
  let best: SoftwareTile = { rows: 8, columns: 4, along: 'rows', threads: 0, cost: Infinity };
  const all = softwareTiles(compact);
  const named = all.find((tile) => softwareTileName(tile) === name);
  for (const { rows, columns, along } of named ? [named] : all) {
    const rowBlocks = Math.ceil(m / rows);
    const columnBlocks = Math.ceil(n / (4 * columns));
    const padded = (blocks: number) => Math.ceil(blocks / SOFTWARE_THREADS) * SOFTWARE_THREADS;
    const threads = along === 'rows' ? padded(rowBlocks) * columnBlocks : rowBlocks * padded(columnBlocks);
    const cost = threads * stepCost({ rows, columns }, along === 'rows' && subgroups);
    if (cost < best.cost * 0.97) best = { rows, columns, along, threads, cost };
  }
  return best;
}
