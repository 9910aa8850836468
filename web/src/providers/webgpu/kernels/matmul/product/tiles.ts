// The tiles with which GPUs compute products, their names, and which of them a product can take on a device.
import type { DeviceTraits } from '../../../../../contract/kernel';
import type { HardwareSpec, LeftKind } from './spec';

export type HardwareTile = Pick<
  HardwareSpec,
  | 'tileRows'
  | 'tileColumns'
  | 'tileDepth'
  | 'rows'
  | 'columns'
  | 'slices'
  | 'buffers'
  | 'ahead'
  | 'unrolled'
  | 'directB'
>;

/** What decides about a product's tile. */
export interface Problem {
  readonly left: LeftKind;
  readonly m: number;
  readonly n: number;
  /** Of all taps. */
  readonly k: number;
  readonly z: number;
  readonly aVec: 1 | 4;
  readonly bVec: 1 | 4;
  readonly transposed: boolean;
  /** Whether the operands may be rounded to float16, and the device multiplies matrices of that. */
  readonly halves?: boolean;
}

export interface HardwareChoice {
  readonly tile: HardwareTile;
  /** Parts of k that are worth workgroups of their own, and a launch that adds them up. */
  readonly parts: number;
}

/** Which row, from its first, is row `i` of a thread: each of a pair of threads has every second one. */
export function rowOfThread(i: number): number {
  return 2 * i;
}

export const LARGEST: HardwareTile = tile(128, 64, 32, { rows: 8, columns: 2 });
export const LARGE: HardwareTile = tile(64, 64, 32, { columns: 2 });
export const SMALL: HardwareTile = tile(32, 32, 32);
/** For depths that are done in one step or two. */
export const WIDE: HardwareTile = tile(32, 64, 32);
/** Where elements of a are read one by one, more threads hide it. */
export const BY_ELEMENT: readonly HardwareTile[] = [tile(64, 64, 32), WIDE, SMALL];
export const SHALLOW: HardwareTile = tile(32, 64, 32, { slices: 2 });
export const DEEP: HardwareTile = tile(32, 32, 32, { slices: 4 });
/** Half as deep: for devices with 16 KiB of workgroup memory. */
export const DEEP_IN_LITTLE: HardwareTile = tile(32, 32, 16, { slices: 4 });
export const FEW: HardwareTile = tile(16, 32, 16, { slices: 4, buffers: 2 });
export const CUT: HardwareTile = tile(32, 32, 16, { slices: 4, buffers: 2 });
export const MOST_PARTS = 4;
export const MANY_PARTS = 8;
export const MANY_SLICES: HardwareTile = tile(16, 32, 32, { slices: 8 });
export const LOW: HardwareTile = tile(16, 32, 16, { slices: 8 });
export const LOW_AHEAD: HardwareTile = tile(16, 32, 16, { slices: 8, ahead: 2 });
export const LOW_BY_FOUR: HardwareTile = tile(16, 32, 16, { slices: 4 });
/** Of bytes. */
export const BYTES_LARGE: HardwareTile = tile(64, 64, 128);
export const BYTES: HardwareTile = tile(32, 32, 64, { slices: 2 });
export const BYTES_FEW: HardwareTile = tile(16, 32, 32, { slices: 4 });
export const BYTES_DEEP: HardwareTile = tile(16, 32, 64, { slices: 4 });
const TALL = tile(32, 64, 16, { rows: 8, slices: 4, unrolled: 4, ahead: 2 });
/** For tables only. */
const OTHERS: readonly HardwareTile[] = [
  tile(32, 32, 16, { rows: 8, slices: 4 }),
  tile(16, 32, 16, { slices: 8, buffers: 2 }),
  tile(32, 32, 32, { rows: 8, slices: 8, unrolled: 4, directB: true }),
  TALL,
  tile(32, 64, 16, { rows: 8, slices: 4, unrolled: 4 }),
];
/** Tiles that parts of k may have, besides CUT. */
const ALSO_CUT: readonly HardwareTile[] = [FEW, MANY_SLICES, TALL, DEEP_IN_LITTLE];
const TILES: readonly HardwareTile[] = [
  ...[LARGEST, LARGE, ...BY_ELEMENT, SHALLOW, DEEP, DEEP_IN_LITTLE, FEW, CUT],
  ...[MANY_SLICES, LOW_AHEAD, LOW, LOW_BY_FOUR, ...OTHERS],
];

/** As tables and tests name it. */
export function choiceName({ tile, parts }: HardwareChoice): string {
  return inParts(tileName(tile), parts);
}

export function inParts(name: string, parts: number): string {
  return parts > 1 ? `${name}_parts_${parts}` : name;
}

export function tileName(tile: HardwareTile): string {
  const { tileRows, tileColumns, tileDepth, rows, columns, slices, buffers, ahead, directB } = tile;
  const thread = rows === 4 && columns === 1 ? '' : `_${rows}x${columns * 4}`;
  const how = [
    buffers === 2 ? '_two' : '',
    ahead === 2 ? '_ahead' : '',
    directB ? '_direct' : '',
    slices > 1 ? `_slices_${slices}` : '',
  ];
  return `${tileRows}x${tileColumns}x${tileDepth}${thread}${how.join('')}`;
}

/** By what a table of tiles knows a product. */
export function productKey({ left, m, n, k, z, aVec, bVec, transposed, halves }: Problem): string {
  const how = `${transposed ? '_transposed' : ''}${halves ? '_halves' : ''}`;
  return `${left}_${m}x${n}x${k}x${z}_${aVec}${bVec}${how}`;
}

/** What the device's table says. */
export function namedTile(problem: Problem, { tiles }: Pick<DeviceTraits, 'tiles'>): string | undefined {
  return tiles && (tiles[productKey(problem)] ?? tiles['*']);
}

/** All ways in which a GPU can compute the product. */
export function choices(problem: Problem, device: Pick<DeviceTraits, 'maxWorkgroupStorage'>): HardwareChoice[] {
  const whole = TILES.map((each) => ({ tile: each, parts: 1 }));
  const cut = [
    ...Array.from({ length: MOST_PARTS - 1 }, (_, i) => ({ tile: CUT, parts: i + 2 })),
    ...ALSO_CUT.flatMap((each) => [2, MOST_PARTS].map((parts) => ({ tile: each, parts }))),
    { tile: SHALLOW, parts: MANY_PARTS },
  ];
  const deepEnough = ({ tile: { tileDepth, slices }, parts }: HardwareChoice) =>
    problem.k > (parts - 1) * tileDepth * slices;
  return [...whole, ...cut.filter(deepEnough)].filter((choice) => fits(choice.tile, problem, device));
}

/** Whether the product can be computed with this tile. */
export function fits(
  tile: HardwareTile,
  { left, transposed }: Pick<Problem, 'left' | 'transposed'>,
  device: Pick<DeviceTraits, 'maxWorkgroupStorage'>,
): boolean {
  // Rows of b that lie scattered, or along k, are better staged.
  if (tile.directB && (left === 'phases' || transposed)) return false;
  const { a, b } = workgroupQuads(tile);
  return 16 * (a + b) <= device.maxWorkgroupStorage;
}

/**
 * Elements of workgroup memory for tiles of a and of b: vec4s, and of a's bytes words. In the end they hold the sums
 * of all slices: half of the rows of each, or all of them one that has vec4s alone.
 */
export function workgroupQuads(tile: HardwareTile & Pick<HardwareSpec, 'bytes'>): {
  readonly a: number;
  readonly b: number;
} {
  const { tileRows, tileColumns, tileDepth, slices, buffers, directB, bytes } = tile;
  const sums = slices > 1 ? (slices * tileRows * tileColumns) / 4 : 0;
  if (bytes) {
    const [a, b] = [tileRows, tileColumns].map((across) => (buffers * slices * tileDepth * across) / 16);
    return { a: 4 * a, b: Math.max(b, sums) };
  }
  const room = (across: number, share: number) => Math.max((buffers * slices * tileDepth * across) / 4, share);
  return directB ? { a: room(tileRows, sums), b: 0 } : { a: room(tileRows, sums / 2), b: room(tileColumns, sums / 2) };
}

function tile(
  tileRows: number,
  tileColumns: number,
  tileDepth: number,
  rest: Partial<HardwareTile> = {},
): HardwareTile {
  const usual = { rows: 4, columns: 1, slices: 1, buffers: 1, ahead: 1, unrolled: 2, directB: false } as const;
  return { tileRows, tileColumns, tileDepth, ...usual, ...rest };
}
