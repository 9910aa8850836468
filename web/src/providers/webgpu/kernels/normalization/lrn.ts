// LRN: divides each element by a power of the squares of its neighbors in the other channels.
import { type Kernel, NHWC_DOMAIN, type Shader, type Spec, type StorageType } from '../../../../contract/kernel';
import { inLanes, type Lanes, laneType, load, stored } from '../../wgsl/lanes';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { orNan } from '../../wgsl/math';
import { sizeOf } from '../../../../contract/shape';

interface LrnSpec extends Spec {
  /** Pixels at a time. */
  readonly lanes: Lanes;
  readonly storage: StorageType;
}

const SHADER: Shader<LrnSpec> = {
  name: 'lrn__any',
  wgsl: ({ lanes, storage }) =>
    orNan('or_nan', laneType('f32', lanes), laneType('i32', lanes)) +
    linearMain(`  let channel = i / u.pixels % u.channels;
  let first = channel - min(channel, u.before);
  let end = min(channel + u.after + 1u, u.channels);
  var squares = ${laneType('f32', lanes)}(0.0);
  for (var c = first; c < end; c++) {
    let v = ${load(storage, lanes, 'x[i + c * u.pixels - channel * u.pixels]')}; squares += v * v; }
  let sum = u.bias + u.alpha * squares;
  y[i] = ${stored(
    storage,
    lanes,
    `${load(storage, lanes, 'x[i]')} / or_nan(pow(sum, ${laneType('f32', lanes)}(u.beta)), sum)`,
  )};`),
};

interface LrnAttributes {
  readonly alpha: number;
  readonly beta: number;
  readonly bias: number;
  readonly size: number;
}

export default [false, true].map(
  (last): Kernel<LrnAttributes> => ({
    op: 'LRN',
    domain: last ? NHWC_DOMAIN : undefined,
    types: [['float32', 'float16']],
    attributes: (a) => ({
      alpha: a.number('alpha', 0.0001),
      beta: a.number('beta', 0.75),
      bias: a.number('bias', 1),
      size: a.integer('size', 1),
    }),
    resolve(ctx, { alpha, beta, bias, size }) {
      const x = ctx.input(0);
      const y = ctx.output(0, x.dims);
      // Channels last are planes of one pixel each.
      const pixels = last ? 1 : sizeOf(x.dims.slice(2));
      const channels = last ? x.dims[x.dims.length - 1] : x.dims[1];
      const lanes = pixels % 4 === 0 ? 4 : 1;
      const count = x.size / lanes;
      ctx.dispatch({
        shader: SHADER,
        spec: { lanes, storage: x.storage },
        inputs: { x: inLanes(x, lanes) },
        outputs: { y: inLanes(y, lanes) },
        uniforms: {
          count,
          channels,
          pixels: pixels / lanes,
          before: Math.min(Math.floor((size - 1) / 2), channels),
          after: Math.min(Math.ceil((size - 1) / 2), channels),
          alpha: alpha / size,
          beta,
          bias,
        },
        f32: ['alpha', 'beta', 'bias'],
        workgroups: linearWorkgroups(count, ctx.device),
      });
    },
  }),
);
