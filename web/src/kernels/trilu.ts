// Trilu and EyeLike: what depends on the diagonal that an element is on.
import type { Kernel, Shader, Spec, StorageType } from '../contract/kernel';
import type { DType } from '../schema';
import { ALL, HOST, linearMain, linearWorkgroups } from '../wgsl';

interface TriluSpec extends Spec {
  readonly upper: boolean;
  readonly type: StorageType;
}

const TRILU: Shader<TriluSpec> = {
  name: 'trilu',
  wgsl: ({ upper, type }) =>
    linearMain(`  let column = i32(i % u.columns);
  let row = i32(i / u.columns % u.rows);
  if (column - row ${upper ? '>=' : '<='} u.diagonal) { y[i] = x[i]; } else { y[i] = ${type}(0); }`),
};

const trilu: Kernel<boolean> = {
  op: 'Trilu',
  types: [ALL, HOST],
  attributes: (given) => given.integer('upper', 1) !== 0,
  resolve(ctx, upper) {
    const x = ctx.input(0);
    const y = ctx.output(0, x.dims);
    const [rows, columns] = x.dims.slice(-2);
    const far = 2 ** 30;
    const diagonal = Math.max(-far, Math.min(far, ctx.data(1)?.[0] ?? 0));
    ctx.dispatch({
      shader: TRILU,
      spec: { upper, type: x.storage },
      inputs: { x },
      outputs: { y },
      uniforms: { count: y.size, rows, columns, diagonal },
      i32: ['diagonal'],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

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

export default [trilu, eyeLike];
