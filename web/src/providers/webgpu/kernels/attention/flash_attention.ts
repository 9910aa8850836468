// Flash attention: in one dispatch, block of keys by block of keys, with a softmax that corrects itself at each larger
// score. A row is a query of a head; heads that share keys have their rows together. If there are few rows and many
// keys, as when a model generates token by token, several threads or workgroups share the keys of a row, and a second
// dispatch combines their results.
import type { Binding, Context, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import type { Lanes } from '../../wgsl/lanes';
import { bindingCount } from '../../wgsl/large';
import { linearWorkgroups } from '../../wgsl/linear';
import { FLASH_COMBINE } from './flash_combine';
import { FLASH_ROWS } from './flash_rows';
import { FLASH_TILES } from './flash_tiles';
import { MASKING_F32, MASKING_I32, maskingParts, unseen } from './masking';
import type { Attention, Heads } from './spec';

const MOST_VECTORS = 64;
const LARGEST_GRID = 65535;
/**
 * With blocks of this many rows there must be at least this number of blocks, or a GPU has too little work; the last
 * one limits the share of padded rows.
 */
const [MANY_ROWS, MANY_BLOCKS, MOST_PADDED] = [32, 256, 1.1];

/** Dispatches it if the heads' form allows; otherwise returns false. */
export function flashAttention(ctx: Context, t: Attention): boolean {
  const { batch, heads, kvHeads, queries, keys } = t;
  if (t.debug || keys === 0) return false;
  const parts = [t.q, t.k, t.v, t.y];
  const fours = [t.size, t.valueSize, ...parts.flatMap(({ strides, offset = 0 }) => [...strides, offset])].every(
    (step) => step % 4 === 0,
  );
  const lanes: Lanes = fours ? 4 : 1;
  const [size, valueSize] = [t.size / lanes, t.valueSize / lanes];
  if (Math.max(size, valueSize) > MOST_VECTORS || parts.some(({ tensor }) => tensor.storage !== t.y.tensor.storage))
    return false;
  const sharing = heads / kvHeads;
  const rowCount = queries * sharing;
  const blocksOf = (rows: number) => batch * kvHeads * Math.ceil(rowCount / rows);
  const block = ctx.device.software
    ? threadBlock(rowCount, size + valueSize)
    : tileBlock(ctx, t, rowCount, blocksOf, lanes);
  if (!block) return false;
  const { rows, columns } = block;
  const blocks = blocksOf(rows);
  const splits = splitsOf(ctx.device.software, blocks, keys);
  if (blocks * splits > LARGEST_GRID * LARGEST_GRID) return false;
  // Parts of one tensor are bound once.
  const tensors: Tensor[] = [];
  const nameOf = ({ tensor }: Heads): string => {
    const found = tensors.findIndex(({ id }) => id === tensor.id);
    return `x${found < 0 ? tensors.push(tensor) - 1 : found}`;
  };
  const names = [nameOf(t.q), nameOf(t.k), nameOf(t.v)] as const;
  const masking = maskingParts(t.masking);
  const split = splits > 1;
  if (
    bindingCount(tensors, ctx.device) + Object.keys(masking.inputs).length + (split ? 2 : 1) >
    ctx.device.maxStorageBuffersPerStage
  )
    return false;
  const bound = (tensor: Tensor): Binding => ({ tensor, vec: lanes });
  const place = ({ strides, offset = 0 }: Heads) => [...strides, offset].map((step) => step / lanes);
  const found = split ? partialsOf(ctx, batch * heads * queries, splits, t.valueSize) : undefined;
  ctx.dispatch({
    shader: ctx.device.software ? FLASH_ROWS : FLASH_TILES,
    spec: {
      lanes,
      size,
      valueSize,
      storage: t.y.tensor.storage,
      names,
      masking: masking.spec,
      threads: threadsOf(block, blocks * splits),
      rowsOfThread: rows === MANY_ROWS ? 2 : 1,
      rows,
      columns,
      sharing: sharing > 1,
      split,
    },
    inputs: { ...Object.fromEntries(tensors.map((tensor, i) => [`x${i}`, bound(tensor)])), ...masking.inputs },
    outputs: found ? { y: bound(found.sums), state: { tensor: found.state, vec: 2 } } : { y: bound(t.y.tensor) },
    uniforms: {
      count: blocks * splits,
      splits,
      blocks: Math.ceil(rowCount / rows),
      rows: rowCount,
      kv_heads: kvHeads,
      sharing,
      queries,
      keys,
      q: place(t.q),
      k: place(t.k),
      v: place(t.v),
      y: place(t.y),
      scale: t.scale,
      ...masking.uniforms,
    },
    i32: MASKING_I32,
    f32: ['scale', ...MASKING_F32],
    workgroups: ctx.device.software
      ? linearWorkgroups(blocks * splits, ctx.device)
      : linearWorkgroups(blocks * splits, ctx.device, 1),
  });
  if (!found) return true;
  const { sink } = t.masking;
  const vectors = batch * heads * queries * valueSize;
  ctx.dispatch({
    shader: FLASH_COMBINE,
    spec: { lanes, valueSize, storage: t.y.tensor.storage, sharing: sharing > 1, sink: masking.spec.sink },
    inputs: { sums: bound(found.sums), state: { tensor: found.state, vec: 2 }, ...(sink && { sink }) },
    outputs: { y: bound(t.y.tensor) },
    uniforms: {
      count: vectors,
      splits,
      rows: rowCount,
      kv_heads: kvHeads,
      sharing,
      y: place(t.y),
      unseen: unseen(t.masking),
    },
    f32: ['unseen'],
    workgroups: linearWorkgroups(vectors, ctx.device),
  });
  return true;
}

interface Block {
  readonly rows: number;
  readonly columns: number;
}

/** A thread's part in registers. */
function threadBlock(rowCount: number, vectors: number): Block {
  const rows = vectors > 16 ? 2 : 4;
  return { rows: rowCount >= rows ? rows : rowCount >= 2 ? 2 : 1, columns: 4 };
}

/** A workgroup's part in memory: few rows leave more threads to each, many blocks of more rows read less often. */
function tileBlock(
  ctx: Context,
  { size, valueSize, masking }: Attention,
  rowCount: number,
  blocksOf: (rows: number) => number,
  lanes: number,
): Block | undefined {
  // One vector more than is used for each row, and for weights one element; the span of keys, if only a GPU knows it.
  const bytes = ({ rows, columns }: Block) =>
    4 * (rows * (size + lanes) + columns * (Math.max(size, valueSize) + lanes) + rows * (columns + 1)) +
    (masking.lengths ? 16 : 0);
  const few: Block[] =
    rowCount <= 8
      ? [
          { rows: 4, columns: 32 },
          { rows: 8, columns: 32 },
        ]
      : [];
  const padded = (blocksOf(MANY_ROWS) * MANY_ROWS) / (blocksOf(16) * 16);
  const many: Block[] =
    blocksOf(MANY_ROWS) >= MANY_BLOCKS && padded <= MOST_PADDED ? [{ rows: MANY_ROWS, columns: 32 }] : [];
  const blocks = [...few, ...many, ...[32, 16, 8].map((columns) => ({ rows: 16, columns }))];
  return blocks.find((block) => bytes(block) <= ctx.device.maxWorkgroupStorage);
}

/** If few blocks do not fill a device, each has more threads. */
function threadsOf({ rows, columns }: Block, blocks: number): number {
  return blocks < 256 && rows * columns >= 256 ? 256 : 128;
}

/** The number of shares of a row's keys: enough to occupy the whole device. */
function splitsOf(software: boolean, blocks: number, keys: number): number {
  const [wanted, least] = software ? [128, 32] : [256, 128];
  return blocks * 2 > wanted ? 1 : Math.min(Math.ceil(wanted / blocks), Math.ceil(keys / least));
}

/** The result of each share of a row: values weighted and added, the largest score, and the sum of weights. */
function partialsOf(ctx: Context, rows: number, splits: number, valueSize: number): { sums: Tensor; state: Tensor } {
  return {
    sums: ctx.temp([rows, splits, valueSize], DType.float32),
    state: ctx.temp([rows, splits, 2], DType.float32),
  };
}
