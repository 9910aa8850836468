// Copies elements between two walks of the same shape: the base of transposes, slices, tiles, splits and similar
// operators.
import type { Context, Shader, Spec, StorageType, Tensor } from '../../../contract/kernel';
import { inLanes, type Lanes } from './lanes';
import { bindable, bindsWhole, windowStep } from './large';
import { linearMain, linearWorkgroups } from './linear';
import { foldWalk, sizeOf, stridesOf, wideWalk, type Walk } from '../../../contract/shape';
import { walkIndices, walkUniforms } from './walk';

/** The steps of a walk through a tensor. Strides may be negative, or 0 to repeat. */
export interface View {
  readonly offset?: number;
  readonly strides: readonly number[];
}

interface CopySpec extends Spec {
  readonly rank: number;
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** True if the source's lanes are contiguous; otherwise one element fills them all. */
  readonly wide: boolean;
  /** True if the target is walked in order, without gaps. */
  readonly inOrder: boolean;
}

const STRIDED_COPY: Shader<CopySpec> = {
  name: 'strided_copy',
  wgsl({ rank, lanes, wide, inOrder }) {
    const names = inOrder ? ['x'] : ['x', 'y'];
    const element = wide || lanes === 1 ? 'x[at_x]' : 'vec4(x[at_x])';
    const body = `${walkIndices(rank, names, { start: { x: 'u.x_start', y: 'u.y_start' } })}
  y[${inOrder ? 'u.y_start + i' : 'at_y'}] = ${element};`;
    return linearMain(body);
  },
};

/** target[index along to] = source[index along from], for every index of `dims`. */
export function stridedCopy(
  ctx: Context,
  source: Tensor,
  from: View,
  target: Tensor,
  to: View,
  dims: readonly number[],
): void {
  if (sizeOf(dims) === 0) return;
  const folded = foldWalk({ dims, strides: [from.strides, to.strides] });
  const offsets = [from.offset ?? 0, to.offset ?? 0];
  const tensors = [source, target] as const;
  if (
    tensors.some((tensor) => !bindsWhole(tensor, ctx.device)) &&
    tensors.every((tensor) => bindable(tensor, ctx.device) > windowStep(tensor))
  ) {
    copyInParts(ctx, tensors, folded, offsets);
    return;
  }
  const fours = folded.strides[1].at(-1) === 1 ? wideWalk(folded, 4, offsets) : undefined;
  const { walk, wide, lanes } = fours
    ? { walk: fours.walk, wide: fours.wide[0], lanes: 4 as const }
    : { walk: folded, wide: true, lanes: 1 as const };
  if (!fours && !ctx.device.ownElement && blockCopy(ctx, source, target, folded, offsets)) return;
  const count = sizeOf(walk.dims);
  ctx.dispatch({
    shader: STRIDED_COPY,
    spec: { rank: walk.dims.length, lanes, type: source.storage, wide, inOrder: inOrder(walk) },
    inputs: { x: inLanes(source, wide ? lanes : 1) },
    outputs: { y: inLanes(target, lanes) },
    uniforms: {
      count,
      x_start: offsets[0] / (wide ? lanes : 1),
      y_start: offsets[1] / lanes,
      ...walkUniforms(walk, ['x', 'y']),
    },
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

/** Halves the walk until each half accesses no more of either tensor than one binding, and copies between windows. */
function copyInParts(
  ctx: Context,
  tensors: readonly [Tensor, Tensor],
  { dims, strides }: Walk,
  offsets: readonly number[],
): void {
  const spans = strides.map((stride, k) => {
    const reach = (sign: number) =>
      dims.reduce((sum, dim, axis) => sum + Math.max(0, sign * stride[axis]) * (dim - 1), 0);
    const unit = windowStep(tensors[k]);
    const begin = Math.floor((offsets[k] - reach(-1)) / unit) * unit;
    // Whole vectors: a window of fours may read and write them.
    return { begin, size: Math.min(tensors[k].size - begin, Math.ceil((offsets[k] + reach(1) + 1 - begin) / 4) * 4) };
  });
  const large = spans.findIndex(({ size }, k) => size > bindable(tensors[k], ctx.device));
  if (large < 0) {
    const [source, target] = tensors.map((tensor, k) => ctx.window(tensor, spans[k].begin, [spans[k].size]));
    const [from, to] = strides.map((stride, k) => ({ offset: offsets[k] - spans[k].begin, strides: stride }));
    stridedCopy(ctx, source, from, target, to, dims);
    return;
  }
  const extent = dims.map((dim, axis) => Math.abs(strides[large][axis]) * (dim - 1));
  const axis = extent.indexOf(Math.max(...extent));
  // Vectors of four stay whole.
  const half = Math.max(
    1,
    Math.ceil(dims[axis] / 2 / 4) * 4 < dims[axis] ? Math.ceil(dims[axis] / 2 / 4) * 4 : Math.floor(dims[axis] / 2),
  );
  const resized = (size: number) => dims.map((dim, k) => (k === axis ? size : dim));
  copyInParts(ctx, tensors, { dims: resized(half), strides }, offsets);
  copyInParts(
    ctx,
    tensors,
    { dims: resized(dims[axis] - half), strides },
    offsets.map((offset, k) => offset + half * strides[k][axis]),
  );
}

/** True if the walk's second tensor is walked element by element. */
function inOrder({ dims, strides: [, to] }: Walk): boolean {
  let expected = 1;
  for (let axis = dims.length - 1; axis >= 0; axis--) {
    if (to[axis] !== expected) return false;
    expected *= dims[axis];
  }
  return true;
}

interface BlockSpec extends Spec {
  readonly rank: number;
  readonly type: StorageType;
}

// A thread transposes a block of 4x4 elements in registers: it reads four vectors along one axis and writes four along
// the other.
const BLOCK_COPY: Shader<BlockSpec> = {
  name: 'strided_copy__block_4x4',
  wgsl({ rank, type }) {
    const rows = [0, 1, 2, 3];
    const columns = rows.map(
      (k) => `  y[at_y + ${k}u * u.y_step] = vec4<${type}>(${rows.map((r) => `r${r}[${k}]`).join(', ')});`,
    );
    const body = [
      walkIndices(rank, ['x', 'y'], { start: { x: 'u.x_start', y: 'u.y_start' } }),
      ...rows.map((r) => `  let r${r} = x[at_x + ${r}u * u.x_step];`),
      ...columns,
    ];
    return linearMain(body.join('\n'));
  },
};

/** The walk from block to block, and the steps from row to row of one, in vectors. */
interface Blocks {
  readonly walk: Walk;
  readonly xStep: number;
  readonly yStep: number;
}

/** For a walk in which source and target are contiguous along different axes; undefined if it has no blocks. */
function blocksOf({ dims, strides: [from, to] }: Walk): Blocks | undefined {
  const across = from.indexOf(1); // neighbors in the source
  const along = to.indexOf(1); // neighbors in the target
  if (across < 0 || along < 0 || across === along) return undefined;
  const blocked = dims.map((dim, axis) => (axis === across || axis === along ? dim / 4 : dim));
  // A step of one block, in vectors, for each side.
  const steps = (strides: readonly number[], own: number): number[] =>
    strides.map((step, axis) => {
      if (axis === own) return 1;
      return axis === across || axis === along ? step : step / 4;
    });
  const walk: Walk = { dims: blocked, strides: [steps(from, across), steps(to, along)] };
  const [xStep, yStep] = [from[along] / 4, to[across] / 4];
  return [...blocked, ...walk.strides.flat(), xStep, yStep].every(Number.isInteger)
    ? { walk, xStep, yStep }
    : undefined;
}

/** Copies in blocks; false if that is impossible. */
function blockCopy(ctx: Context, source: Tensor, target: Tensor, whole: Walk, offsets: readonly number[]): boolean {
  const blocks = offsets.every((offset) => offset % 4 === 0) ? blocksOf(whole) : undefined;
  if (!blocks) return false;
  const { walk, xStep, yStep } = blocks;
  const count = sizeOf(walk.dims);
  ctx.dispatch({
    shader: BLOCK_COPY,
    spec: { rank: walk.dims.length, type: source.storage },
    inputs: { x: inLanes(source, 4) },
    outputs: { y: inLanes(target, 4) },
    uniforms: {
      count,
      x_start: offsets[0] / 4,
      y_start: offsets[1] / 4,
      x_step: xStep,
      y_step: yStep,
      ...walkUniforms(walk, ['x', 'y']),
    },
    workgroups: linearWorkgroups(count, ctx.device),
  });
  return true;
}

/** Elements of the shape `dims` with their axes in the order `perm`: their places before and after. */
function permutation(dims: readonly number[], perm: readonly number[]): Walk {
  const [strides, permuted] = [stridesOf(dims), perm.map((axis) => dims[axis])];
  return { dims: permuted, strides: [perm.map((axis) => strides[axis]), stridesOf(permuted)] };
}

/** True if `permute` copies in blocks. */
export function permutesInBlocks(dims: readonly number[], perm: readonly number[]): boolean {
  return blocksOf(foldWalk(permutation(dims, perm))) !== undefined;
}

/** target = source, viewed in the shape `dims`, with its axes in the order `perm`. */
export function permute(
  ctx: Context,
  source: Tensor,
  dims: readonly number[],
  perm: readonly number[],
  target: Tensor,
): void {
  const { dims: permuted, strides } = permutation(dims, perm);
  stridedCopy(ctx, source, { strides: strides[0] }, target, { strides: strides[1] }, permuted);
}
