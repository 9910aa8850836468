// The tile with which a GPU computes a product: by a table where there is one, else by a rough model of what it takes.
import type { DeviceTraits } from '../../../contract/kernel';
import {
  BY_ELEMENT,
  choiceName,
  choices,
  CUT,
  fits,
  type HardwareChoice,
  type HardwareTile,
  LARGE,
  LARGEST,
  MOST_PARTS,
  namedTile,
  type Problem,
  SMALL,
} from './tiles';

/** Workgroups that keep a large GPU busy: with large tiles, with the largest, with small ones. */
const BUSY = 128;
const VERY_BUSY = 256;
const HALF_BUSY = 64;
/** Beyond this k, parts pay where tiles are few. */
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
/** By how much a tile must be better than an earlier one of the list. */
const GAIN = 0.97;

type Device = Pick<DeviceTraits, 'maxWorkgroupStorage' | 'tiles'>;

export function hardwareTile(problem: Problem, device: Device): HardwareChoice {
  return fromTable(problem, device) ?? byModel(problem, device);
}

function fromTable(problem: Problem, device: Device): HardwareChoice | undefined {
  const name = namedTile(problem, device);
  if (name === undefined) return undefined;
  return choices(problem, device).find((choice) => choiceName(choice) === name);
}

function byModel(problem: Problem, device: Device): HardwareChoice {
  const { n, k, aVec } = problem;
  const suits = (candidate: HardwareTile, workgroups: number) =>
    workgroupsOf(candidate, problem) >= workgroups &&
    1 - n / (Math.ceil(n / candidate.tileColumns) * candidate.tileColumns) <= MOST_WASTE;
  const large = (
    aVec === 1
      ? BY_ELEMENT.map((each) => [each, BUSY] as const)
      : ([
          [LARGEST, VERY_BUSY],
          [LARGE, BUSY],
        ] as const)
  ).find(([candidate, workgroups]) => suits(candidate, workgroups));
  if (large) return { tile: large[0], parts: 1 };
  const count = workgroupsOf(CUT, problem);
  if (k > CUT_K && count < HALF_BUSY) return { tile: CUT, parts: Math.min(MOST_PARTS, Math.ceil((2 * BUSY) / count)) };
  const possible = SMALL.filter((candidate) => fits(candidate, problem, device));
  let [best, ...others] = possible;
  for (const other of others) if (cycles(other, problem) < GAIN * cycles(best, problem)) best = other;
  return { tile: best, parts: 1 };
}

function workgroupsOf({ tileRows, tileColumns }: HardwareTile, { m, n, z }: Problem): number {
  return Math.ceil(m / tileRows) * Math.ceil(n / tileColumns) * z;
}

/** What the busiest unit takes, about: its arithmetic, or the latency of one workgroup, whichever is more. */
function cycles(tile: HardwareTile, problem: Problem): number {
  const { tileRows, tileColumns, tileDepth, rows, columns, slices, buffers } = tile;
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
  const alone = steps * Math.max(LATENCY, (multiplications * tileDepth) / 4);
  const adding = slices > 1 ? (outputs * slices) / 16 : 0;
  return Math.max((each * perK * depth) / LANES, alone) + (steps * BARRIER * 2) / buffers + each * adding;
}
