import type { Kernel, Shader, Spec, StorageType } from '../../../../contract/kernel';
import { ALL, INDICES, linearMain, linearWorkgroups, sizeOf } from '../../wgsl';

interface ReverseSpec extends Spec {
  readonly type: StorageType;
}

const REVERSE: Shader<ReverseSpec> = {
  name: 'reverse_sequence',
  wgsl: () =>
    linearMain(`  let time = i / u.time_stride % u.times;
  let length = min(u32(lengths[i / u.batch_stride % u.batches]), u.times);
  let from_time = select(time, length - 1u - time, time < length);
  y[i] = x[i - time * u.time_stride + from_time * u.time_stride];`),
};

const reverseSequence: Kernel<{ batch: number; time: number }> = {
  op: 'ReverseSequence',
  types: [ALL, INDICES],
  attributes: (given) => ({ batch: given.integer('batch_axis', 1), time: given.integer('time_axis', 0) }),
  resolve(ctx, { batch, time }) {
    const [x, lengths] = [ctx.input(0), ctx.input(1)];
    const y = ctx.output(0, x.dims);
    ctx.dispatch({
      shader: REVERSE,
      spec: { type: x.storage },
      inputs: { x, lengths },
      outputs: { y },
      uniforms: {
        count: y.size,
        times: x.dims[time],
        time_stride: sizeOf(x.dims.slice(time + 1)),
        batches: x.dims[batch],
        batch_stride: sizeOf(x.dims.slice(batch + 1)),
      },
      workgroups: linearWorkgroups(y.size, ctx.device),
    });
  },
};

export default [reverseSequence];
