import type { Kernel, Shader, Spec, StorageType } from '../../../../contract/kernel';
import { ALL, HOST, linearMain, linearWorkgroups } from '../../wgsl';

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

export default [trilu];
