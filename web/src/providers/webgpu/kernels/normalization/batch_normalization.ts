// BatchNormalization: a factor and a shift for each channel. At inference the statistics are inputs; in training they
// are computed from x.
import {
  type Context,
  type Kernel,
  NHWC_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  elementwise,
  elementwiseShader,
  FLOATS,
  inLanes,
  type Lanes,
  laneType,
  linearMain,
  linearWorkgroups,
  load,
  sizeOf,
  stored,
} from '../../wgsl';
import { reduceMeanOf } from '../reduction/reduce';

interface BatchSpec extends Spec {
  readonly lanes: Lanes;
  readonly storage: StorageType;
  /** Channels last: a vector then has the elements of `lanes` channels. */
  readonly last: boolean;
}

const SHADER: Shader<BatchSpec> = {
  name: 'batch_normalization__any',
  wgsl: ({ lanes, storage, last }) => {
    const type = laneType('f32', last ? lanes : 1);
    return linearMain(`  let channel = ${last ? 'i % u.channels' : 'i / u.pixels % u.channels'};
  let factor = ${type}(scale[channel]) / sqrt(${type}(variance[channel]) + u.epsilon);
  let shift = ${type}(bias[channel]) - ${type}(mean[channel]) * factor;
  y[i] = ${stored(storage, lanes, `${load(storage, lanes, 'x[i]')} * factor + ${laneType('f32', lanes)}(shift)`)};`);
  },
};

/** [images, channels, pixels] of x; a tensor of one axis has one channel. */
function shapeOf({ dims }: Tensor, last: boolean): [images: number, channels: number, pixels: number] {
  if (last) return [dims[0], dims[dims.length - 1], sizeOf(dims.slice(1, -1))];
  return [dims[0], dims[1] ?? 1, sizeOf(dims.slice(2))];
}

function normalize(ctx: Context, x: Tensor, mean: Tensor, variance: Tensor, epsilon: number, last: boolean): void {
  const y = ctx.output(0, x.dims);
  const [, channels, pixels] = shapeOf(x, last);
  const lanes: Lanes = (last ? channels : pixels) % 4 === 0 ? 4 : 1;
  const each = (tensor: Tensor) => inLanes(tensor, last ? lanes : 1);
  const count = x.size / lanes;
  ctx.dispatch({
    shader: SHADER,
    spec: { lanes, storage: x.storage, last },
    inputs: {
      x: inLanes(x, lanes),
      scale: each(ctx.input(1)),
      bias: each(ctx.input(2)),
      mean: each(mean),
      variance: each(variance),
    },
    outputs: { y: inLanes(y, lanes) },
    uniforms: {
      count,
      channels: last ? channels / lanes : channels,
      ...(!last && { pixels: pixels / lanes }),
      epsilon,
    },
    f32: ['epsilon'],
    workgroups: linearWorkgroups(count, ctx.device),
  });
}

const SQUARED_DISTANCE = elementwiseShader(
  'squared_distance',
  () => 'fn apply(x: F, mean: F) -> R { return (x - mean) * (x - mean); }',
);
const RUNNING = elementwiseShader(
  'running_average',
  () => 'fn apply(before: F, now: F) -> R { return before * u.momentum + now * (1.0 - u.momentum); }',
);

/** Mean and variance of each channel of the batch; outputs 1 and 2 are the running ones. */
function train(ctx: Context, momentum: number, last: boolean): { mean: Tensor; variance: Tensor } {
  const [images, channels, pixels] = shapeOf(ctx.input(0), last);
  const x = ctx.reshape(ctx.input(0), last ? [images, pixels, channels] : [images, channels, pixels]);
  const axes = last ? [0, 1] : [0, 2];
  const broadcast = last ? [1, 1, channels] : [1, channels, 1];
  const [mean, variance] = [ctx.temp(broadcast, DType.float32), ctx.temp(broadcast, DType.float32)];
  reduceMeanOf(ctx, x, axes, mean);
  const squares = ctx.temp(x.dims, DType.float32);
  elementwise(ctx, SQUARED_DISTANCE, { x, mean }, squares);
  reduceMeanOf(ctx, squares, axes, variance);
  [mean, variance].forEach((now, k) => {
    if (!ctx.wants(k + 1)) return;
    const before = ctx.input(3 + k);
    elementwise(
      ctx,
      RUNNING,
      { before, now: ctx.reshape(now, [channels]) },
      ctx.output(k + 1, [channels], before.dtype),
      { uniforms: { momentum }, f32: ['momentum'] },
    );
  });
  return { mean, variance };
}

interface BatchAttributes {
  readonly epsilon: number;
  readonly momentum: number;
  readonly training: boolean;
}

export default [false, true].map(
  (last): Kernel<BatchAttributes> => ({
    op: 'BatchNormalization',
    domain: last ? NHWC_DOMAIN : undefined,
    types: [FLOATS],
    attributes: (a) => ({
      epsilon: a.number('epsilon', 1e-5),
      momentum: a.number('momentum', 0.9),
      training: a.integer('training_mode', 0) !== 0,
    }),
    resolve(ctx, { epsilon, momentum, training }) {
      const { mean, variance } = training ? train(ctx, momentum, last) : { mean: ctx.input(3), variance: ctx.input(4) };
      normalize(ctx, ctx.input(0), mean, variance, epsilon, last);
    },
  }),
);
