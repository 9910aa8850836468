// The tiles with which a GPU with matrix units computes a product of halves, and the choice of a tile.
import type { DeviceTraits, SubgroupMatrix } from '../../../../../contract/kernel';
import type { LeftKind } from './spec';
import { inParts, MOST_PARTS, namedTile, type Problem } from './tiles';

export interface MatrixTile {
  /** Rows and columns of a workgroup's tile. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Depth of the tiles of a and b. */
  readonly tileDepth: number;
  /** Rows and columns of a subgroup's part. */
  readonly partRows: number;
  readonly partColumns: number;
  /** Parts of k that subgroups of one workgroup share, each with its own tiles; their sums are added at the end. */
  readonly slices: number;
}

const LARGE = tile(128, 128, 64, 32);
const SMALL = tile(64, 64, 32, 32);
const SMALL_BY_TWO = tile(64, 64, 32, 32, 2);
const SMALL_BY_TWO_DEEP: MatrixTile = { ...SMALL_BY_TWO, tileDepth: 64 };
const NARROW_BY_FOUR = tile(32, 64, 32, 32, 4);
const LEAST_BY_FOUR = tile(32, 32, 16, 32, 4);
const LEAST_BY_EIGHT = tile(32, 32, 32, 32, 8);
const TILES: readonly MatrixTile[] = [
  LARGE,
  SMALL,
  SMALL_BY_TWO,
  SMALL_BY_TWO_DEEP,
  tile(32, 64, 32, 32, 2),
  NARROW_BY_FOUR,
  tile(32, 32, 32, 32, 2),
  LEAST_BY_FOUR,
  LEAST_BY_EIGHT,
];

/**
 * Tiles for which k may also be cut into parts besides slices: separate workgroups, whose sums another dispatch adds
 * up.
 */
const CUT: readonly MatrixTile[] = [SMALL, SMALL_BY_TWO, LEAST_BY_EIGHT];
/** The least k of a part that is worth a dispatch. */
const LEAST_PART = 256;

export interface MatrixChoice {
  readonly tile: MatrixTile;
  readonly parts: number;
}

/** Extra elements after each row of a tile, so that rows do not begin in one bank. */
export const PADDING = 8;

/**
 * The number of workgroups of such tiles, and the k, from which each is faster than the following ones: an H200's and
 * an H100's numbers, for products of BERT, of decoders' prompts, and of ResNet-50. With fewer than for the last,
 * threads' own arithmetic is faster; for windows it is so sooner.
 */
const RULES: readonly {
  readonly tile: MatrixTile;
  readonly workgroupsOf: MatrixTile;
  readonly least: number;
  readonly leastK?: number;
  readonly left?: LeftKind;
  readonly parts?: number;
}[] = [
  { tile: LARGE, workgroupsOf: LARGE, least: 128 },
  { tile: SMALL, workgroupsOf: SMALL, least: 160 },
  { tile: SMALL_BY_TWO_DEEP, workgroupsOf: SMALL, least: 72, left: 'matrix' },
  { tile: SMALL_BY_TWO, workgroupsOf: SMALL, least: 72 },
  { tile: NARROW_BY_FOUR, workgroupsOf: SMALL, least: 40 },
  { tile: SMALL_BY_TWO, workgroupsOf: SMALL, least: 40 },
  { tile: SMALL_BY_TWO, workgroupsOf: SMALL, least: 16, leastK: 2048, parts: MOST_PARTS },
  { tile: LEAST_BY_EIGHT, workgroupsOf: LEAST_BY_EIGHT, least: 24, leastK: 2048, parts: MOST_PARTS },
  { tile: LEAST_BY_FOUR, workgroupsOf: LEAST_BY_EIGHT, least: 96 },
  { tile: LEAST_BY_EIGHT, workgroupsOf: LEAST_BY_EIGHT, least: 64 },
  { tile: LEAST_BY_EIGHT, workgroupsOf: LEAST_BY_EIGHT, least: 32, left: 'matrix' },
  { tile: SMALL, workgroupsOf: SMALL, least: 40 }, // if k or workgroup memory is too small for slices
];

type Device = Pick<DeviceTraits, 'subgroupMatrix' | 'maxWorkgroupStorage' | 'tiles'>;

/** The tile for such a product, if one is faster and the device has the memory. */
export function matrixTile(problem: Problem, device: Device): MatrixChoice | undefined {
  const fitting = matrixTiles(problem, device);
  const name = namedTile(problem, device);
  if (name !== undefined) return fitting.find((each) => matrixTileName(each) === name);
  // Windows that are read one element at a time are slower than the threads' own arithmetic.
  if (problem.left === 'windows' && problem.aVec === 1) return undefined;
  for (const { tile, workgroupsOf, least, leastK = 0, left, parts = 1 } of RULES) {
    const found = fitting.find((each) => each.tile === tile && each.parts === parts);
    const fits = (left === undefined || left === problem.left) && problem.k >= leastK;
    if (found && fits && countOf(workgroupsOf, problem) >= least) return found;
  }
  return undefined;
}

/** All tiles that can compute it. */
export function matrixTiles({ halves, m, n, k }: Problem, device: Device): readonly MatrixChoice[] {
  const { subgroupMatrix: matrix, maxWorkgroupStorage } = device;
  if (!matrix || !halves) return [];
  const whole = TILES.map((tile) => ({ tile, parts: 1 }));
  const cut = CUT.flatMap((tile) => [2, MOST_PARTS].map((parts) => ({ tile, parts })));
  return [...whole, ...cut].filter(
    ({ tile, parts }) =>
      k >= tile.tileDepth * tile.slices &&
      (parts === 1 || k >= parts * LEAST_PART) &&
      m >= tile.partRows &&
      n >= tile.partColumns &&
      workgroupBytes(tile, matrix) <= maxWorkgroupStorage,
  );
}

/** Its name in tables and tests. */
export function matrixTileName({ tile, parts }: MatrixChoice): string {
  const { tileRows, tileColumns, tileDepth, slices } = tile;
  return inParts(`matrices_${tileRows}x${tileColumns}x${tileDepth}${slices > 1 ? `_slices_${slices}` : ''}`, parts);
}

function countOf({ tileRows, tileColumns }: MatrixTile, { m, n, z }: Problem): number {
  return Math.ceil(m / tileRows) * Math.ceil(n / tileColumns) * z;
}

/** An upper bound: with b [n, k] it may be a little less. */
function workgroupBytes(tile: MatrixTile, { m, n }: SubgroupMatrix): number {
  const { tileRows, tileColumns, tileDepth, partRows, partColumns, slices } = tile;
  const parts = (tileRows / partRows) * (tileColumns / partColumns);
  const rows = Math.max(tileColumns * (tileDepth + PADDING), tileDepth * (tileColumns + PADDING));
  return slices * (2 * (tileRows * (tileDepth + PADDING) + rows) + 4 * parts * m * n);
}

function tile(tileRows: number, tileColumns: number, partRows: number, partColumns: number, slices = 1): MatrixTile {
  return { tileRows, tileColumns, tileDepth: 32, partRows, partColumns, slices };
}
