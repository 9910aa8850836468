// The tiles with which GPUs compute products, their names, and the tiles possible for a product on a device.
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

/** The facts that determine a product's tile. */
export interface Problem {
  readonly left: LeftKind;
  readonly m: number;
  readonly n: number;
  /** Over all taps. */
  readonly k: number;
  readonly z: number;
  readonly aVec: 1 | 4;
  readonly bVec: 1 | 4;
  readonly transposed: boolean;
  /** True if the operands may be rounded to float16, and the device has matrix units for it. */
  readonly halves?: boolean;
}

export interface HardwareChoice {
  readonly tile: HardwareTile;
  /** Parts of k that are worth separate workgroups, and a dispatch that adds them up. */
  readonly parts: number;
}

/** The row, from its first, of a thread's row `i`: each of a pair of threads has every second row. */
export function rowOfThread(i: number): number {
  return 2 * i;
}

export const LARGEST: HardwareTile = tile(128, 64, 32, { rows: 8, columns: 2 });
export const LARGE: HardwareTile = tile(64, 64, 32, { columns: 2 });
export const SMALL: HardwareTile = tile(32, 32, 32);
/** For depths of one or two steps. */
export const WIDE: HardwareTile = tile(32, 64, 32);
/** If elements of a are read one by one, more threads hide the time. */
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
/** For bytes. */
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
/** Tiles for which k may be cut into parts, besides CUT. */
const ALSO_CUT: readonly HardwareTile[] = [FEW, MANY_SLICES, TALL, DEEP_IN_LITTLE];
const TILES: readonly HardwareTile[] = [
  ...[LARGEST, LARGE, ...BY_ELEMENT, SHALLOW, DEEP, DEEP_IN_LITTLE, FEW, CUT],
  ...[MANY_SLICES, LOW_AHEAD, LOW, LOW_BY_FOUR, ...OTHERS],
];

/** Its name in tables and tests. */
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

/** The key of a product in a table of tiles. */
export function productKey({ left, m, n, k, z, aVec, bVec, transposed, halves }: Problem): string {
  const how = `${transposed ? '_transposed' : ''}${halves ? '_halves' : ''}`;
  return `${left}_${m}x${n}x${k}x${z}_${aVec}${bVec}${how}`;
}

/** The tile in the device's table. */
export function namedTile(problem: Problem, { tiles }: Pick<DeviceTraits, 'tiles'>): string | undefined {
  return tiles && (tiles[productKey(problem)] ?? tiles['*']);
}

/** All forms in which a GPU can compute the product. */
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

/** True if the product can be computed with this tile. */
export function fits(
  tile: HardwareTile,
  { left, transposed }: Pick<Problem, 'left' | 'transposed'>,
  device: Pick<DeviceTraits, 'maxWorkgroupStorage'>,
): boolean {
  // Rows of b that are scattered, or run along k, are better staged.
  if (tile.directB && (left === 'phases' || transposed)) return false;
  const { a, b } = workgroupQuads(tile);
  return 16 * (a + b) <= device.maxWorkgroupStorage;
}

/**
 * Elements of workgroup memory for tiles of a and of b: vec4s, or words for a's bytes. In the end they hold the sums of
 * all slices: half of the rows each, or all of them in the one that has vec4s.
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
