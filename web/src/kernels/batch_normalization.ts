// BatchNormalization at inference: a factor and a shift for each channel, of statistics that are inputs.
import { type Kernel, KernelError, type Shader, type Spec, type StorageType } from '../jsep/kernel';
import { inLanes, type Lanes, laneType, load, stored } from '../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../wgsl/linear';
import { sizeOf } from '../wgsl/shape';

interface BatchSpec extends Spec {
  readonly lanes: Lanes;
  readonly storage: StorageType;
}

const SHADER: Shader<BatchSpec> = {
  name: 'batch_normalization__any',
  wgsl: ({ lanes, storage }) =>
    linearMain(`  let channel = i / u.pixels % u.channels;
  let factor = f32(scale[channel]) / sqrt(f32(variance[channel]) + u.epsilon);
  let shift = f32(bias[channel]) - f32(mean[channel]) * factor;
  y[i] = ${stored(storage, lanes, `${load(storage, lanes, 'x[i]')} * factor + ${laneType('f32', lanes)}(shift)`)};`),
};

const batchNormalization: Kernel<{ epsilon: number; training: boolean }> = {
  op: 'BatchNormalization',
  types: [['float32', 'float16']],
  attributes: (a) => ({ epsilon: a.number('epsilon', 1e-5), training: a.integer('training_mode', 0) !== 0 }),
  resolve(ctx, { epsilon, training }) {
    if (training) throw new KernelError('BatchNormalization in training mode', true);
    const x = ctx.input(0);
    const y = ctx.output(0, x.dims);
    const channels = x.dims.length > 1 ? x.dims[1] : 1;
    const pixels = sizeOf(x.dims.slice(2));
    const lanes = pixels % 4 === 0 ? 4 : 1;
    const count = x.size / lanes;
    ctx.dispatch({
      shader: SHADER, spec: { lanes, storage: x.storage },
      inputs: { x: inLanes(x, lanes), scale: ctx.input(1), bias: ctx.input(2), mean: ctx.input(3), variance: ctx.input(4) }, outputs: { y: inLanes(y, lanes) },
      uniforms: { count, channels, pixels: pixels / lanes, epsilon }, f32: ['epsilon'], workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

export default [batchNormalization];
