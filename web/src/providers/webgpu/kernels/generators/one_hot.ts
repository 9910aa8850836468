import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { ALL, HOST, linearMain, linearWorkgroups, NUMBERS, sizeOf } from '../../wgsl';

interface OneHotSpec extends Spec {
  readonly type: StorageType;
  readonly indexType: StorageType;
}

// y is [outer, depth, inner], indices [outer, inner]; values are [off, on].
const ONE_HOT: Shader<OneHotSpec> = {
  name: 'one_hot',
  wgsl: () =>
    linearMain(`  let inner = i % u.inner;
  let rest = i / u.inner;
  let index = i32(indices[rest / u.depth * u.inner + inner]);
  let wanted = select(index, index + i32(u.depth), index < 0);
  if (wanted == i32(rest % u.depth)) { y[i] = values[1]; } else { y[i] = values[0]; }`),
};

const oneHot: Kernel<number> = {
  op: 'OneHot',
  types: [NUMBERS, HOST, ALL],
  attributes: (given) => given.integer('axis', -1),
  resolve(ctx, givenAxis) {
    const [indices, values] = [ctx.input(0), ctx.input(2)];
    const depth = ctx.data(1)?.[0] ?? 0;
    const rank = indices.dims.length + 1;
    const axis = givenAxis < 0 ? givenAxis + rank : givenAxis;
    if (axis < 0 || axis >= rank)
      throw new KernelError(`OneHot: the result has ${rank} axes, there is no axis ${givenAxis}`);
    const y = ctx.output(0, [...indices.dims.slice(0, axis), depth, ...indices.dims.slice(axis)], values.dtype);
    ctx.dispatch({
      shader: ONE_HOT,
      spec: { type: values.storage, indexType: indices.storage },
      inputs: { indices, values },
      outputs: { y },
      uniforms: { count: y.size, depth, inner: sizeOf(indices.dims.slice(axis)) },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [oneHot];
