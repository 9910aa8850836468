// MaxUnpool: puts elements back where MaxPool found them; all others are zeros.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { FLOATS, HOST, linearMain, linearWorkgroups, stridedCopy, stridesOf } from '../../wgsl';
import { readWindow, slideTransposed, type WindowAttributes } from '../../../../contract/window';

const ZERO: Shader<{ readonly storage: StorageType }> = {
  name: 'max_unpool__zero',
  wgsl: ({ storage }) => linearMain(`  y[i] = ${storage}(0.0);`),
};

interface PutSpec extends Spec {
  readonly storage: StorageType;
}
const PUT: Shader<PutSpec> = {
  name: 'max_unpool__put',
  wgsl: () => linearMain('  let at = u32(indices[i]);\n  if (at < u.size) { y[at] = x[i]; }'),
};

const maxUnpool: Kernel<WindowAttributes> = {
  op: 'MaxUnpool',
  types: [FLOATS, ['int64', 'int32'], HOST],
  attributes: readWindow,
  resolve(ctx, window) {
    const [x, indices] = [ctx.input(0), ctx.input(1)];
    const kernel = window.kernelShape;
    if (x.dims.join() !== indices.dims.join() || x.dims.length !== kernel.length + 2)
      throw new KernelError(`MaxUnpool of [${x.dims}] by indices [${indices.dims}] and a window of [${kernel}]`);
    // The shape to which the indices refer; the result may be cut from it, or be larger.
    const own = [...x.dims.slice(0, 2), ...slideTransposed(window, x.dims.slice(2), kernel).output];
    const dims = ctx.data(2) ?? own;
    if (dims.length !== own.length) throw new KernelError(`MaxUnpool of [${x.dims}] to the shape [${dims}]`);
    const y = ctx.output(0, dims);
    const same = dims.join() === own.join();
    const target = same ? y : ctx.temp(own, x.dtype);
    for (const tensor of same ? [y] : [y, target]) {
      ctx.dispatch({
        shader: ZERO,
        spec: { storage: tensor.storage },
        inputs: {},
        outputs: { y: tensor },
        uniforms: { count: tensor.size },
        workgroups: linearWorkgroups(tensor.size, ctx.device),
      });
    }
    ctx.dispatch({
      shader: PUT,
      spec: { storage: x.storage },
      inputs: { x, indices },
      outputs: { y: target },
      uniforms: { count: x.size, size: target.size },
      workgroups: linearWorkgroups(x.size, ctx.device),
    });
    if (!same)
      stridedCopy(
        ctx,
        target,
        { strides: stridesOf(own) },
        y,
        { strides: stridesOf(dims) },
        dims.map((dim, axis) => Math.min(dim, own[axis])),
      );
  },
};

export default [maxUnpool];
