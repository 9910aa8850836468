// Concat: the output is viewed as [outer, width], and each input has some of the columns. One dispatch handles as many
// inputs as may be bound. On a software adapter, where pipelines are expensive, many inputs have a dispatch each (see
// strided_copy).
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
  bindsWhole,
  inLanes,
  type Lanes,
  linearMain,
  linearWorkgroups,
  normalizeAxis,
  sizeOf,
  stridedCopy,
} from '../../wgsl';
import { type ColumnAttributes, type Columns, columnsOf, outputColumns, readColumns } from '../shared/columns';

interface ConcatSpec extends Spec {
  readonly inputs: number;
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** Vectors that a thread copies in turn. */
  readonly items: number;
  /** The inputs are columns of wider tensors. */
  readonly columns: boolean;
}

/** The most inputs for which a software adapter gets a separate pipeline. */
const FEW = 4;

const CONCAT: Shader<ConcatSpec> = {
  name: 'concat',
  alias: true,
  wgsl({ inputs, items, columns }) {
    const source = (k: number) =>
      `x${k}[row * ${columns ? `u.pitches_${k} + u.firsts_${k}` : `u.widths_${k}`} + column]`;
    const lines = [
      '  let row = i / u.width;',
      '  var column = i % u.width;',
      '  let at = row * u.row + u.start + column;',
    ];
    for (let k = 0; k < inputs - 1; k++) {
      lines.push(`  if (column < u.widths_${k}) { y[at] = ${source(k)}; } else {`, `  column -= u.widths_${k};`);
    }
    lines.push(`  y[at] = ${source(inputs - 1)};`, '  }'.repeat(inputs - 1));
    return linearMain(lines.join('\n'), { items });
  },
};

/** Copies the columns `from` of each tensor side by side to columns of y from `start` on. */
function concatColumns(
  ctx: Context,
  tensors: readonly Tensor[],
  from: readonly Columns[],
  y: Tensor,
  row: number,
  start: number,
  lanes: Lanes,
): void {
  const widths = from.map(({ count }) => count);
  const width = widths.reduce((sum, w) => sum + w, 0);
  const count = ((y.size / row) * width) / lanes;
  const items = ctx.device.software ? 4 : 1;
  const vectors = (elements: number): number => elements / lanes;
  const columns = from.some(({ count, pitch }) => count < pitch);
  ctx.dispatch({
    shader: CONCAT,
    spec: { inputs: tensors.length, lanes, type: y.storage, items, columns },
    inputs: Object.fromEntries(tensors.map((tensor, k) => [`x${k}`, inLanes(tensor, lanes)])),
    outputs: { y: inLanes(y, lanes) },
    uniforms: {
      count,
      width: vectors(width),
      row: vectors(row),
      start: vectors(start),
      widths: widths.map(vectors),
      ...(columns && {
        pitches: from.map(({ pitch }) => vectors(pitch)),
        firsts: from.map(({ first }) => vectors(first)),
      }),
    },
    workgroups: linearWorkgroups(Math.ceil(count / items), ctx.device),
  });
}

/** The dims of the joined tensors. One without elements need not fit, if it contributes nothing. */
function joinedDims(tensors: readonly Tensor[], axis: number, own: (tensor: Tensor, k: number) => number): number[] {
  const model = tensors.find(({ size }) => size > 0) ?? tensors[0];
  const dims = model.dims.slice();
  dims[axis] = tensors.reduce((sum, tensor, k) => sum + own(tensor, k), 0);
  const isEmpty = dims.includes(0);
  const fits = (tensor: Tensor): boolean =>
    tensor.dims.length === dims.length &&
    ((tensor.size === 0 && (isEmpty || tensor.dims[axis] === 0)) ||
      tensor.dims.every((dim, k) => k === axis || dim === dims[k]));
  if (!tensors.every(fits))
    throw new KernelError(
      `Concat along axis ${axis}: the shapes ${tensors.map(({ dims }) => `[${dims}]`).join(', ')} differ elsewhere`,
    );
  return dims;
}

interface ConcatAttributes {
  readonly axis: number;
  readonly columns: ColumnAttributes;
}

export const joining: Kernel<ConcatAttributes> = {
  op: 'Concat',
  types: [ALL],
  features: ['columns'],
  attributes: (given) => ({ axis: given.integer('axis', 0), columns: readColumns(given) }),
  resolve(ctx, { axis: givenAxis, columns }) {
    // The tensor to write into is last.
    const tensors = ctx.inputs.slice(0, columns.into).map((_, i) => ctx.input(i));
    const axis = normalizeAxis(givenAxis, tensors[0].dims.length);
    const own = (tensor: Tensor, k: number): number => columns.x[2 * k + 1] ?? tensor.dims[axis];
    const dims = joinedDims(tensors, axis, own);
    const full = tensors.map((tensor, k) => ({ tensor, k })).filter(({ tensor }) => tensor.size > 0);
    const isWhole = columns.x.length === 0 && columns.y.length === 0;
    if (full.length === 1 && isWhole) return ctx.view(0, full[0].tensor, dims);
    const { y, at } = outputColumns(ctx, dims, columns);
    if (y.size === 0) return;
    // A row is everything after the axis; with columns the axis is the last one.
    const inner = sizeOf(dims.slice(axis + 1));
    const from = full.map(({ tensor, k }): Columns => {
      if (!isWhole) return columnsOf(tensor, columns.x.slice(2 * k, 2 * k + 2));
      const width = tensor.dims[axis] * inner;
      return { first: 0, count: width, pitch: width };
    });
    const row = isWhole ? dims[axis] * inner : at.pitch;
    const lanes = [row, at.first, ...from.flatMap((each) => [each.first, each.count, each.pitch])].every(
      (number) => number % 4 === 0,
    )
      ? 4
      : 1;
    const most = Math.min(8, ctx.device.maxStorageBuffersPerStage - 1);
    let start = isWhole ? 0 : at.first;
    if ((ctx.device.software && full.length > FEW) || !bindsWhole(y, ctx.device)) {
      full.forEach(({ tensor }, i) => {
        const { first: begin, count, pitch } = from[i];
        stridedCopy(ctx, tensor, { offset: begin, strides: [pitch, 1] }, y, { offset: start, strides: [row, 1] }, [
          tensor.size / pitch,
          count,
        ]);
        start += count;
      });
      return;
    }
    for (let k = 0; k < full.length; k += most) {
      const part = from.slice(k, k + most);
      concatColumns(
        ctx,
        full.slice(k, k + most).map(({ tensor }) => tensor),
        part,
        y,
        row,
        start,
        lanes,
      );
      start += part.reduce((sum, { count }) => sum + count, 0);
    }
  },
};

export default [joining];
