// Pad and CenterCropPad. Negative pads cut. Each thread computes the place in the input of its element.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import {
  ALL,
  computeType,
  HOST,
  inLanes,
  type Lanes,
  linearMain,
  linearWorkgroups,
  normalizeAxes,
  stridedCopy,
  stridesOf,
} from '../../wgsl';

type Mode = 'constant' | 'edge' | 'reflect' | 'wrap';

interface PadSpec extends Spec {
  readonly mode: Mode;
  readonly rank: number;
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** True if the constant is a tensor; otherwise it is a uniform. */
  readonly filled: boolean;
}

/** Maps an index `p: i32` outside the input (of `n` elements) back into it. */
const INTO_RANGE: { readonly [mode in Mode]: string } = {
  constant: '',
  edge: 'p = clamp(p, 0, n - 1);',
  // Mirrored at both ends, repeatedly; the end elements are not doubled.
  reflect: 'let m = max(2 * n - 2, 1); p = p % m; p = select(p, p + m, p < 0); p = min(p, m - p); p = min(p, n - 1);',
  wrap: 'p = p % n; p = select(p, p + n, p < 0);',
};

const PAD: Shader<PadSpec> = {
  name: 'pad',
  wgsl({ mode, rank, lanes, type, filled }) {
    const element = lanes === 1 ? type : `vec${lanes}<${type}>`;
    const lines = ['  var rest = i;', '  var at = u.offset;', '  var inside = true;'];
    for (let axis = rank - 1; axis >= 0; axis--) {
      const index = axis > 0 ? `i32(rest % u.dims_${axis})` : 'i32(rest)';
      lines.push(`  { var p = ${index} - u.before_${axis}; let n = u.from_${axis};`);
      lines.push(mode === 'constant' ? '    inside = inside & (p >= 0) & (p < n);' : `    ${INTO_RANGE[mode]}`);
      lines.push(`    at += p * u.x_${axis}; }`);
      if (axis > 0) lines.push(`  rest = rest / u.dims_${axis};`);
    }
    const constant = `${element}(${filled ? 'value[0]' : `${type}(u.value)`})`;
    if (mode === 'constant') lines.push(`  if (inside) { y[i] = x[at]; } else { y[i] = ${constant}; }`);
    else lines.push('  y[i] = x[at];');
    return linearMain(lines.join('\n'));
  },
};

/** Padding along an axis prevents folding with its neighbors; axes without padding fold into the previous one. */
function fold(
  dims: readonly number[],
  before: readonly number[],
  after: readonly number[],
): { dims: number[]; before: number[]; after: number[] } {
  const folded = { dims: [] as number[], before: [] as number[], after: [] as number[] };
  let untouched = false;
  dims.forEach((dim, axis) => {
    const plain = before[axis] === 0 && after[axis] === 0;
    const last = folded.dims.length - 1;
    if (plain && untouched) {
      folded.dims[last] *= dim;
      return;
    }
    folded.dims.push(dim);
    folded.before.push(before[axis]);
    folded.after.push(after[axis]);
    untouched = plain;
  });
  return folded;
}

function pad(
  ctx: Context,
  mode: Mode,
  x: Tensor,
  before: readonly number[],
  after: readonly number[],
  value: Tensor | number,
): void {
  const dims = x.dims.map((dim, axis) => before[axis] + dim + after[axis]);
  if (dims.some((dim) => dim < 0))
    throw new KernelError(`Pad of [${x.dims}] by [${before}] and [${after}] leaves less than nothing`);
  if (before.every((count) => count === 0) && after.every((count) => count === 0)) return ctx.view(0, x, dims);
  const y = ctx.output(0, dims);
  if (y.size === 0) return;
  if (before.every((count) => count <= 0) && after.every((count) => count <= 0)) {
    const strides = stridesOf(x.dims);
    const offset = before.reduce((sum, count, axis) => sum - count * strides[axis], 0);
    return stridedCopy(ctx, x, { offset, strides }, y, { strides: stridesOf(dims) }, dims);
  }
  // Negative pads cut first; the rest is repeated.
  const left = x.dims.map((dim, axis) => dim + Math.min(before[axis], 0) + Math.min(after[axis], 0));
  if (mode !== 'constant' && left.some((dim) => dim <= 0))
    throw new KernelError(
      `Pad of [${x.dims}] by [${before}] and [${after}] with mode ${mode}: nothing is left to repeat`,
    );
  const folded = fold(x.dims, before, after);
  const last = folded.dims.length - 1;
  const plainLast = folded.before[last] === 0 && folded.after[last] === 0;
  const inFours = [folded.dims, folded.before, folded.after].every((counts) => counts[last] % 4 === 0);
  const lanes = inFours && (plainLast || mode === 'constant') ? 4 : 1;
  const vectors = (counts: readonly number[]): number[] =>
    counts.map((count, axis) => (axis === last ? count / lanes : count));
  const [size, start, end] = [vectors(folded.dims), vectors(folded.before), vectors(folded.after)];
  const strides = stridesOf(size);
  const [from, first] = [
    size.map((dim, axis) => dim + Math.min(start[axis], 0) + Math.min(end[axis], 0)),
    start.map((count) => Math.max(-count, 0)),
  ];
  const offset = first.reduce((sum, index, axis) => sum + index * strides[axis], 0);
  const count = y.size / lanes;
  const constant = mode === 'constant' ? value : 0;
  const filled = typeof constant !== 'number';
  const type = computeType(x.storage);
  ctx.dispatch({
    shader: PAD,
    spec: { mode, rank: size.length, lanes, type: x.storage, filled },
    inputs: { x: inLanes(x, lanes), ...(filled ? { value: constant } : {}) },
    outputs: { y: inLanes(y, lanes) },
    uniforms: {
      count,
      offset,
      dims: size.map((dim, axis) => start[axis] + dim + end[axis]),
      from,
      before: start.map((padded) => Math.max(padded, 0)),
      x: strides,
      value: filled ? 0 : constant,
    },
    f32: type === 'f32' ? ['value'] : [],
    i32: ['offset', 'from', 'before', 'x', ...(type === 'i32' ? ['value'] : [])],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

const padKernel: Kernel<Mode> = {
  op: 'Pad',
  types: [ALL, HOST, ALL, HOST],
  attributes: (given) => given.text('mode', 'constant') as Mode,
  resolve(ctx, mode) {
    const x = ctx.input(0);
    const rank = x.dims.length;
    const pads = ctx.data(1) ?? [];
    const axes = normalizeAxes(ctx.data(3) ?? x.dims.map((_, axis) => axis), rank);
    if (!(mode in INTO_RANGE)) throw new KernelError(`Pad: there is no mode "${mode}"`);
    if (pads.length !== 2 * axes.length)
      throw new KernelError(`Pad: ${pads.length} pads for ${axes.length} axes; there must be two for each`);
    const before = x.dims.map(() => 0);
    const after = x.dims.map(() => 0);
    axes.forEach((axis, k) => {
      before[axis] = pads[k];
      after[axis] = pads[axes.length + k];
    });
    const value = ctx.inputs[2];
    // A constant is a number, any other value a tensor on the GPU.
    pad(ctx, mode, x, before, after, value?.location === 'gpu' ? value : (ctx.data(2)?.[0] ?? 0));
  },
};

const centerCropPad: Kernel<number[] | undefined> = {
  op: 'CenterCropPad',
  types: [ALL, HOST],
  attributes: (given) => (given.has('axes') ? given.integers('axes') : undefined),
  resolve(ctx, givenAxes) {
    const x = ctx.input(0);
    const axes = normalizeAxes(givenAxes ?? x.dims.map((_, axis) => axis), x.dims.length);
    const sizes = ctx.data(1) ?? [];
    const before = x.dims.map(() => 0);
    const after = x.dims.map(() => 0);
    axes.forEach((axis, k) => {
      const more = sizes[sizes.length === 1 ? 0 : k] - x.dims[axis]; // one size applies to all axes
      // The odd element is cut or added at the end when padding, and at the start when cropping rounds down.
      before[axis] = more >= 0 ? Math.floor(more / 2) : -Math.floor(-more / 2);
      after[axis] = more - before[axis];
    });
    pad(ctx, 'constant', x, before, after, 0);
  },
};

export default [padKernel, centerCropPad];
