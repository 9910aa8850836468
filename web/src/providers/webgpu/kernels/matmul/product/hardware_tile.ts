// The tile with which a GPU computes a product: from a table if there is one, otherwise by rules. The rules' numbers
// are an H100's: convolutions of ResNet-50 and YOLOv8n and products of BERT, each with 23 tiles, 250 times in one pass;
// those of small products are an H200's, measured later.
import type { DeviceTraits } from '../../../../../contract/kernel';
import {
  BY_ELEMENT,
  BYTES,
  BYTES_DEEP,
  BYTES_FEW,
  BYTES_LARGE,
  choiceName,
  choices,
  CUT,
  DEEP,
  DEEP_IN_LITTLE,
  FEW,
  fits,
  type HardwareChoice,
  type HardwareTile,
  LARGE,
  LARGEST,
  LOW,
  LOW_AHEAD,
  LOW_BY_FOUR,
  MANY_PARTS,
  MANY_SLICES,
  MOST_PARTS,
  namedTile,
  type Problem,
  SHALLOW,
  SMALL,
  WIDE,
} from './tiles';

/** Workgroups that occupy a large GPU: with large tiles; with the largest, or by element; with small ones. */
const BUSY = 128;
const VERY_BUSY = 256;
const HALF_BUSY = 64;
/**
 * Up to this k two slices are enough, and up to half of it one is; beyond the second number, parts are faster if there
 * are few tiles.
 */
const SHALLOW_K = 512;
const CUT_K = 4096;
/** With this number of tiles of CUT, no fewer and no more, eight parts are faster from this k on. */
const BY_MANY = { least: 24, most: 40, k: 2048 } as const;
/** The k up to which large tiles are too slow to start. */
const TWO_STEPS = 64;
/** The share of a tile's columns that may exceed the matrix. */
const MOST_WASTE = 0.4;

/**
 * The number of workgroups of SMALL, and the k, with which each is faster than the following ones: an H200's numbers,
 * for products of BERT and convolutions of ResNet-50. The fewer workgroups there are, the more threads share the work
 * of each. Tiles with little memory leave room on a unit for other workgroups, which hide the waits of a step.
 */
const RULES: readonly {
  readonly tile: HardwareTile;
  readonly least: number;
  readonly leastK?: number;
  readonly mostK?: number;
  readonly parts?: number;
}[] = [
  { tile: WIDE, least: 512, mostK: TWO_STEPS },
  { tile: SHALLOW, least: 256, mostK: 256 },
  { tile: DEEP_IN_LITTLE, least: 256 },
  { tile: LOW_BY_FOUR, least: 144 },
  { tile: DEEP_IN_LITTLE, least: 64, leastK: 2048, parts: MOST_PARTS },
  { tile: LOW, least: 64 },
  { tile: MANY_SLICES, least: 0 },
  { tile: LOW_AHEAD, least: 0 },
];

type Device = Pick<DeviceTraits, 'maxWorkgroupStorage' | 'tiles'>;

export function hardwareTile(problem: Problem, device: Device): HardwareChoice {
  return fromTable(problem, device) ?? large(problem, device) ?? cut(problem, device) ?? small(problem, device);
}

/**
 * The tile for products of bytes: the fastest of 48 on an H100, for products with BERT's, ResNet-50's and MiniLM's
 * sizes.
 */
export function byteTile({ m, n, k }: Pick<Problem, 'm' | 'n' | 'k'>, blocks: boolean): HardwareTile {
  const groups = (size: number) => Math.ceil(m / size) * Math.ceil(n / size);
  if (blocks) return groups(64) >= BUSY ? LARGE : SMALL;
  if (groups(64) >= 192) return BYTES_LARGE;
  if (groups(32) >= 256 && k > 64) return BYTES;
  return k < 512 ? BYTES_FEW : BYTES_DEEP;
}

function fromTable(problem: Problem, device: Device): HardwareChoice | undefined {
  const name = namedTile(problem, device);
  if (name === undefined) return undefined;
  return choices(problem, device).find((choice) => choiceName(choice) === name);
}

function large(problem: Problem, device: Device): HardwareChoice | undefined {
  const candidates =
    problem.aVec === 1
      ? BY_ELEMENT.map((tile) => ({ tile, workgroups: tile === BY_ELEMENT[0] ? VERY_BUSY : BUSY }))
      : [
          { tile: LARGEST, workgroups: VERY_BUSY },
          { tile: LARGE, workgroups: BUSY },
        ];
  if (problem.aVec === 4 && problem.k <= TWO_STEPS) return undefined;
  const found = candidates.find(
    ({ tile, workgroups }) => fits(tile, problem, device) && suits(tile, problem, workgroups),
  );
  return found && { tile: found.tile, parts: 1 };
}

/** True if there are enough workgroups, and few wasted columns. */
function suits(tile: HardwareTile, problem: Problem, workgroups: number): boolean {
  const columns = Math.ceil(problem.n / tile.tileColumns) * tile.tileColumns;
  return workgroupsOf(tile, problem) >= workgroups && 1 - problem.n / columns <= MOST_WASTE;
}

function cut(problem: Problem, device: Device): HardwareChoice | undefined {
  const workgroups = workgroupsOf(CUT, problem);
  const byMany = problem.k >= BY_MANY.k && workgroups >= BY_MANY.least && workgroups <= BY_MANY.most;
  if (byMany && suits(SHALLOW, problem, 0) && fits(SHALLOW, problem, device))
    return { tile: SHALLOW, parts: MANY_PARTS };
  if (problem.k <= CUT_K || workgroups >= HALF_BUSY) return undefined;
  if (!fits(CUT, problem, device)) return undefined;
  return { tile: CUT, parts: Math.min(MOST_PARTS, Math.ceil((2 * BUSY) / workgroups)) };
}

function small(problem: Problem, device: Device): HardwareChoice {
  const { k } = problem;
  const workgroups = workgroupsOf(SMALL, problem);
  const found = RULES.find(({ tile, least, leastK = 0, mostK = Infinity }) => {
    const noneIdle = k >= tile.slices * tile.tileDepth;
    const narrow = tile.tileColumns <= SMALL.tileColumns || suits(tile, problem, 0);
    return workgroups >= least && k >= leastK && k <= mostK && noneIdle && narrow && fits(tile, problem, device);
  });
  return found ? { tile: found.tile, parts: found.parts ?? 1 } : { tile: byRule(problem, device), parts: 1 };
}

function byRule(problem: Problem, device: Device): HardwareTile {
  const { k } = problem;
  if (k <= WIDE.tileDepth && suits(WIDE, problem, HALF_BUSY) && fits(WIDE, problem, device)) return WIDE;
  if (workgroupsOf(DEEP, problem) < HALF_BUSY && fits(FEW, problem, device)) return FEW;
  if (k <= SHALLOW_K && suits(SHALLOW, problem, HALF_BUSY) && fits(SHALLOW, problem, device)) return SHALLOW;
  if (k <= SHALLOW_K / 2) return SMALL;
  return fits(DEEP, problem, device) ? DEEP : DEEP_IN_LITTLE;
}

function workgroupsOf({ tileRows, tileColumns }: HardwareTile, { m, n, z }: Problem): number {
  return Math.ceil(m / tileRows) * Math.ceil(n / tileColumns) * z;
}
