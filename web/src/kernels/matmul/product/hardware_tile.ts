// The tile with which a GPU computes a product. The numbers are an H100's: convolutions of ResNet-50 and YOLOv8n and
// products of BERT, each with 23 tiles, 250 times in one pass.
import type { DeviceTraits } from '../../../contract/kernel';
import type { HardwareSpec } from './spec';

export type HardwareTile = Pick<
  HardwareSpec,
  'tileRows' | 'tileColumns' | 'tileDepth' | 'rows' | 'columns' | 'slices' | 'buffers'
>;

interface Problem {
  readonly m: number;
  readonly n: number;
  /** Of all taps. */
  readonly k: number;
  readonly z: number;
  readonly aVec: 1 | 4;
}

export interface HardwareChoice {
  readonly tile: HardwareTile;
  /** Parts of k that are worth workgroups of their own, and a launch that adds them up. */
  readonly parts: number;
}

const LARGEST: HardwareTile = tile(128, 64, 32, { rows: 8, columns: 2 });
const LARGE: HardwareTile = tile(64, 64, 32, { columns: 2 });
/** Where elements of a are read one by one, more threads hide it. */
const BY_ELEMENT: readonly HardwareTile[] = [tile(64, 64, 32), tile(32, 64, 32), tile(32, 32, 32)];
const SHALLOW: HardwareTile = tile(32, 64, 32, { slices: 2 });
const SMALL: HardwareTile = tile(32, 32, 32);
const DEEP: HardwareTile = tile(32, 32, 32, { slices: 4 });
/** Half as deep: for devices with 16 KiB of workgroup memory. */
const DEEP_IN_LITTLE: HardwareTile = tile(32, 32, 16, { slices: 4 });
const FEW: HardwareTile = tile(16, 32, 16, { slices: 4, buffers: 2 });
const CUT: HardwareTile = tile(32, 32, 16, { slices: 4, buffers: 2 });

/** Workgroups that keep a large GPU busy: with large tiles, with the largest, with small ones. */
const BUSY = 128;
const VERY_BUSY = 256;
const HALF_BUSY = 64;
/** Up to this k two slices are enough, and up to half of it one is; beyond the other, parts pay where tiles are few. */
const SHALLOW_K = 512;
const CUT_K = 4096;
const MOST_PARTS = 4;
/** Share of a tile's columns that may lie beyond the matrix. */
const MOST_WASTE = 0.4;

export function hardwareTile(problem: Problem, device: Pick<DeviceTraits, 'maxWorkgroupStorage'>): HardwareChoice {
  const { m, n, k, z, aVec } = problem;
  const count = ({ tileRows, tileColumns }: HardwareTile) => Math.ceil(m / tileRows) * Math.ceil(n / tileColumns) * z;
  const suits = (candidate: HardwareTile, workgroups: number) =>
    count(candidate) >= workgroups &&
    1 - n / (Math.ceil(n / candidate.tileColumns) * candidate.tileColumns) <= MOST_WASTE;
  const whole = (chosen: HardwareTile) => ({ tile: chosen, parts: 1 });
  if (aVec === 1) {
    const busy = BY_ELEMENT.find((candidate) => suits(candidate, BUSY));
    if (busy) return whole(busy);
  } else {
    if (suits(LARGEST, VERY_BUSY)) return whole(LARGEST);
    if (suits(LARGE, BUSY)) return whole(LARGE);
  }
  if (count(DEEP) < HALF_BUSY) {
    return k > CUT_K ? { tile: CUT, parts: Math.min(MOST_PARTS, Math.ceil((2 * BUSY) / count(CUT))) } : whole(FEW);
  }
  if (k <= SHALLOW_K && suits(SHALLOW, HALF_BUSY)) return whole(SHALLOW);
  if (k <= SHALLOW_K / 2) return whole(SMALL);
  return whole(workgroupBytes(DEEP) <= device.maxWorkgroupStorage ? DEEP : DEEP_IN_LITTLE);
}

function workgroupBytes({ tileRows, tileColumns, tileDepth, slices, buffers }: HardwareTile): number {
  return 4 * (tileRows + tileColumns) * tileDepth * slices * buffers;
}

function tile(
  tileRows: number,
  tileColumns: number,
  tileDepth: number,
  rest: Partial<HardwareTile> = {},
): HardwareTile {
  return { tileRows, tileColumns, tileDepth, rows: 4, columns: 1, slices: 1, buffers: 1, ...rest };
}
