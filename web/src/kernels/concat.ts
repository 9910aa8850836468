// Concat: the output is seen as [outer, width], and each input has some of the columns. One dispatch serves as many inputs as may be
// bound; on a software adapter, where pipelines cost much, many inputs have a dispatch each (see strided_copy).
import { type Context, type Kernel, KernelError, type Shader, type Spec, type StorageType, type Tensor } from '../jsep/kernel';
import { ALL, bindsWhole, inLanes, type Lanes, linearMain, linearWorkgroups, normalizeAxis, sizeOf, stridedCopy } from '../wgsl';

interface ConcatSpec extends Spec {
  readonly inputs: number;
  readonly lanes: Lanes;
  readonly type: StorageType;
  /** Vectors that a thread does in turn. */
  readonly items: number;
}

/** Inputs for which a software adapter has a pipeline of its own. */
const FEW = 4;

const CONCAT: Shader<ConcatSpec> = {
  name: 'concat',
  beside: true,
  wgsl({ inputs, items }) {
    const lines = ['  let row = i / u.width;', '  var column = i % u.width;', '  let at = row * u.row + u.start + column;'];
    for (let k = 0; k < inputs - 1; k++) {
      lines.push(`  if (column < u.widths_${k}) { y[at] = x${k}[row * u.widths_${k} + column]; } else {`, `  column -= u.widths_${k};`);
    }
    lines.push(`  y[at] = x${inputs - 1}[row * u.widths_${inputs - 1} + column];`, '  }'.repeat(inputs - 1));
    return linearMain(lines.join('\n'), { items });
  },
};

function concatColumns(ctx: Context, tensors: readonly Tensor[], widths: readonly number[], y: Tensor, row: number, start: number, lanes: Lanes): void {
  const width = widths.reduce((sum, w) => sum + w, 0);
  const count = (y.size / row) * width / lanes;
  const items = ctx.device.software ? 4 : 1;
  const vectors = (elements: number): number => elements / lanes;
  ctx.dispatch({
    shader: CONCAT,
    spec: { inputs: tensors.length, lanes, type: y.storage, items },
    inputs: Object.fromEntries(tensors.map((tensor, k) => [`x${k}`, inLanes(tensor, lanes)])),
    outputs: { y: inLanes(y, lanes) },
    uniforms: { count, width: vectors(width), row: vectors(row), start: vectors(start), widths: widths.map(vectors) },
    workgroups: linearWorkgroups(Math.ceil(count / items), ctx.device),
  });
}

const concat: Kernel<number> = {
  op: 'Concat',
  types: [ALL],
  attributes: (given) => given.integer('axis', 0),
  resolve(ctx, givenAxis) {
    const tensors = ctx.inputs.map((_, i) => ctx.input(i));
    const first = tensors[0];
    const axis = normalizeAxis(givenAxis, first.dims.length);
    const fits = (tensor: Tensor): boolean => tensor.dims.length === first.dims.length && tensor.dims.every((dim, k) => k === axis || dim === first.dims[k]);
    if (!tensors.every(fits)) throw new KernelError(`Concat along axis ${axis}: the shapes ${tensors.map(({ dims }) => `[${dims}]`).join(', ')} differ elsewhere`);
    const dims = first.dims.map((dim, k) => (k === axis ? tensors.reduce((sum, tensor) => sum + tensor.dims[axis], 0) : dim));
    const full = tensors.filter(({ size }) => size > 0);
    if (full.length === 1) return ctx.view(0, full[0], dims);
    const y = ctx.output(0, dims);
    if (y.size === 0) return;
    const widths = full.map((tensor) => sizeOf(tensor.dims.slice(axis)));
    const row = sizeOf(dims.slice(axis));
    const lanes = widths.every((width) => width % 4 === 0) ? 4 : 1;
    const most = Math.min(8, ctx.device.maxStorageBuffersPerStage - 1);
    let start = 0;
    if ((ctx.device.software && full.length > FEW) || !bindsWhole(y, ctx.device)) {
      full.forEach((tensor, k) => {
        const block = [tensor.size / widths[k], widths[k]];
        stridedCopy(ctx, tensor, { strides: [widths[k], 1] }, y, { offset: start, strides: [row, 1] }, block);
        start += widths[k];
      });
      return;
    }
    for (let k = 0; k < full.length; k += most) {
      const part = widths.slice(k, k + most);
      concatColumns(ctx, full.slice(k, k + most), part, y, row, start, lanes);
      start += part.reduce((sum, width) => sum + width, 0);
    }
  },
};

export default [concat];
