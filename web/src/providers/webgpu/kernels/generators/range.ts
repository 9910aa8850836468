import { type Kernel, KernelError, type Shader, type StorageType } from '../../../../contract/kernel';
import { computeType, HOST, linearMain, linearWorkgroups, stored } from '../../wgsl';

const RANGE: Shader<{ readonly type: StorageType }> = {
  name: 'range',
  wgsl: ({ type }) => linearMain(`  y[i] = ${stored(type, 1, `u.start + ${computeType(type)}(i) * u.delta`)};`),
};

const range: Kernel = {
  op: 'Range',
  types: [HOST, HOST, HOST],
  resolve(ctx) {
    const [start, limit, delta] = [0, 1, 2].map((i) => ctx.data(i)?.[0] ?? NaN);
    if (!(Math.abs(delta) > 0)) throw new KernelError(`Range: from ${start} by ${delta} never arrives at ${limit}`);
    const length = Math.ceil((limit - start) / delta);
    if (!Number.isFinite(length)) throw new KernelError(`Range: from ${start} to ${limit} by ${delta} has no end`);
    const y = ctx.output(0, [Math.max(0, length)]);
    const type = computeType(y.storage);
    const names = ['start', 'delta'];
    ctx.dispatch({
      shader: RANGE,
      spec: { type: y.storage },
      inputs: {},
      outputs: { y },
      uniforms: { count: y.size, start, delta },
      f32: type === 'f32' ? names : [],
      i32: type === 'i32' ? names : [],
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [range];
