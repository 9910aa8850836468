import type { Kernel, Shader, StorageType } from '../../../../contract/kernel';
import type { DType } from '../../../../schema';
import { linearMain, linearWorkgroups } from '../../wgsl';

const EYE: Shader<{ readonly type: StorageType }> = {
  name: 'eye_like',
  wgsl: ({ type }) =>
    linearMain(`  let on = i32(i % u.columns) - i32(i / u.columns) == u.diagonal;
  y[i] = select(${type}(0), ${type}(1), on);`),
};

const eyeLike: Kernel<{ dtype: DType | undefined; diagonal: number }> = {
  op: 'EyeLike',
  types: [[]],
  attributes: (given) => ({
    dtype: given.has('dtype') ? given.integer('dtype', 0) : undefined,
    diagonal: given.integer('k', 0),
  }),
  resolve(ctx, { dtype, diagonal }) {
    const dims = ctx.input(0).dims;
    const y = ctx.output(0, dims, dtype);
    ctx.dispatch({
      shader: EYE,
      spec: { type: y.storage },
      inputs: {},
      outputs: { y },
      uniforms: { count: y.size, columns: dims[1], diagonal },
      i32: ['diagonal'],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [eyeLike];
