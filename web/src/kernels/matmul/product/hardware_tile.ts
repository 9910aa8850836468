// The tile with which a GPU computes a product: by a table where there is one, else by rules. The numbers of these are
// an H100's: convolutions of ResNet-50 and YOLOv8n and products of BERT, each with 23 tiles, 250 times in one pass. The
// tiles with more for less came later: they take the place of the rules' where a rough model of a GPU says so.
import type { DeviceTraits } from '../../../contract/kernel';
import {
  BY_ELEMENT,
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
  MORE_FOR_LESS,
  MOST_PARTS,
  namedTile,
  type Problem,
  SHALLOW,
  SMALL,
} from './tiles';

/** Workgroups that keep a large GPU busy: with large tiles, with the largest, with small ones. */
const BUSY = 128;
const VERY_BUSY = 256;
const HALF_BUSY = 64;
/** Up to this k two slices are enough, and up to half of it one is; beyond the other, parts pay where tiles are few. */
const SHALLOW_K = 512;
const CUT_K = 4096;
/** Share of a tile's columns that may lie beyond the matrix. */
const MOST_WASTE = 0.4;

/** Units of a large GPU (an H100), and multiplications that each begins in a cycle. */
const UNITS = 132;
const LANES = 128;
/** What four elements of workgroup memory cost, and one that is fetched, in multiplications. */
const LOAD = 8;
const FETCHED = 8;
/** Cycles: until what was fetched is there, and of a barrier. */
const LATENCY = 1000;
const BARRIER = 75;
/** What a tile may take of an earlier one's cycles to be better. */
const GAIN = 0.97;

type Device = Pick<DeviceTraits, 'maxWorkgroupStorage' | 'tiles'>;

export function hardwareTile(problem: Problem, device: Device): HardwareChoice {
  return fromTable(problem, device) ?? large(problem, device) ?? cut(problem, device) ?? small(problem, device);
}

function fromTable(problem: Problem, device: Device): HardwareChoice | undefined {
  const name = namedTile(problem, device);
  if (name === undefined) return undefined;
  return choices(problem, device).find((choice) => choiceName(choice) === name);
}

function large(problem: Problem, device: Device): HardwareChoice | undefined {
  const candidates =
    problem.aVec === 1
      ? BY_ELEMENT.map((tile) => ({ tile, workgroups: BUSY }))
      : [
          { tile: LARGEST, workgroups: VERY_BUSY },
          { tile: LARGE, workgroups: BUSY },
        ];
  const found = candidates.find(
    ({ tile, workgroups }) => fits(tile, problem, device) && suits(tile, problem, workgroups),
  );
  return found && { tile: found.tile, parts: 1 };
}

/** Whether there are so many workgroups, and no waste of columns. */
function suits(tile: HardwareTile, problem: Problem, workgroups: number): boolean {
  const columns = Math.ceil(problem.n / tile.tileColumns) * tile.tileColumns;
  return workgroupsOf(tile, problem) >= workgroups && 1 - problem.n / columns <= MOST_WASTE;
}

function cut(problem: Problem, device: Device): HardwareChoice | undefined {
  const workgroups = workgroupsOf(CUT, problem);
  if (problem.k <= CUT_K || workgroups >= HALF_BUSY || !fits(CUT, problem, device)) return undefined;
  return { tile: CUT, parts: Math.min(MOST_PARTS, Math.ceil((2 * BUSY) / workgroups)) };
}

function small(problem: Problem, device: Device): HardwareChoice {
  let best = byRule(problem, device);
  for (const tile of MORE_FOR_LESS) {
    const allBusy = problem.k >= tile.slices * tile.tileDepth;
    if (!allBusy || !fits(tile, problem, device)) continue;
    if (cycles(tile, problem) < GAIN * cycles(best, problem)) best = tile;
  }
  return { tile: best, parts: 1 };
}

function byRule(problem: Problem, device: Device): HardwareTile {
  const { k } = problem;
  if (workgroupsOf(DEEP, problem) < HALF_BUSY && fits(FEW, problem, device)) return FEW;
  if (k <= SHALLOW_K && suits(SHALLOW, problem, HALF_BUSY) && fits(SHALLOW, problem, device)) return SHALLOW;
  if (k <= SHALLOW_K / 2) return SMALL;
  return fits(DEEP, problem, device) ? DEEP : DEEP_IN_LITTLE;
}

function workgroupsOf({ tileRows, tileColumns }: HardwareTile, { m, n, z }: Problem): number {
  return Math.ceil(m / tileRows) * Math.ceil(n / tileColumns) * z;
}

/** What the busiest unit takes, about: its arithmetic, or the latency of one workgroup, whichever is more. */
function cycles(tile: HardwareTile, problem: Problem): number {
  const { tileRows, tileColumns, tileDepth, rows, columns, slices, buffers, ahead } = tile;
  const { k, aVec } = problem;
  const workgroups = workgroupsOf(tile, problem) / UNITS;
  // Units that are done sooner leave some of their share of memory to others.
  const each = workgroups <= 1 ? 1 : (workgroups + Math.ceil(workgroups)) / 2;
  const steps = Math.ceil(k / (slices * tileDepth));
  const multiplications = 16 * rows * columns;
  const loads = rows + 4 * columns;
  const outputs = tileRows * tileColumns;
  const perK = outputs * (1 + (LOAD * loads) / multiplications) + FETCHED * ((tileRows * 4) / aVec + tileColumns);
  const depth = Math.ceil(k / tileDepth) * tileDepth;
  const alone = steps * Math.max(LATENCY / ahead, (multiplications * tileDepth) / 4);
  const adding = slices > 1 ? (outputs * slices) / 16 : 0;
  return Math.max((each * perK * depth) / LANES, alone) + (steps * BARRIER * 2) / buffers + each * adding;
}
