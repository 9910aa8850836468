// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: a thread per label, then sums if one number is wanted.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
  type Tensor,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { FLOATS, INDICES, laneAliases, linearMain, linearWorkgroups, mathFunctions, sizeOf, stored } from '../../wgsl';
import { reduceSumOf } from '../reduction/reduce';
import { logSoftmax } from '../normalization/softmax';

interface LossSpec extends Spec {
  readonly weighted: boolean;
  readonly ignores: boolean;
  /** True if the weights of the labels are wanted too, for the mean. */
  readonly weighs: boolean;
  readonly from: StorageType;
  readonly to: StorageType;
}

// x is [batch, classes, inner]. A label outside the classes yields NaN.
const LOSS: Shader<LossSpec> = {
  name: 'negative_log_likelihood_loss',
  wgsl: ({ weighted, ignores, weighs, to }) => `${laneAliases(1)}
${mathFunctions('nan')}
${linearMain(`  let label = labels[i];
  let inside = label >= 0 && label < i32(u.classes);
  let class_ = u32(clamp(label, 0, i32(u.classes) - 1));
  var weight = ${weighted ? 'f32(weights[class_])' : '1.0'};
  var loss = -weight * f32(x[(i / u.inner * u.classes + class_) * u.inner + i % u.inner]);
  if (!inside) { loss = nan(); }
${ignores ? '  if (label == u.ignored) { weight = 0.0; loss = 0.0; }' : ''}
  losses[i] = ${stored(to, 1, 'loss')};
${weighs ? '  label_weights[i] = weight;' : ''}`)}`,
};

const QUOTIENT: Shader<{ readonly to: StorageType }> = {
  name: 'negative_log_likelihood_loss__mean',
  wgsl: ({ to }) => linearMain(`  y[0] = ${stored(to, 1, 'loss[0] / weight[0]')};`),
};

interface LossAttributes {
  readonly ignored: number | undefined;
  readonly reduction: string;
}

/** The ignored label; undefined if it does not fit 32 bits, since no label on the GPU can have it. */
function label(given: Attributes): number | undefined {
  const ignored = given.has('ignore_index') ? given.integer('ignore_index', 0) : undefined;
  return ignored === undefined || ignored !== Math.trunc(ignored) || Math.abs(ignored + 0.5) > 2 ** 31
    ? undefined
    : ignored;
}

function kernel(op: string, softmax: boolean): Kernel<LossAttributes> {
  return {
    op,
    types: [FLOATS, INDICES, FLOATS],
    attributes: (given) => ({ ignored: label(given), reduction: given.text('reduction', 'mean') }),
    resolve(ctx, { ignored, reduction }) {
      const [scores, labels, weights] = [ctx.input(0), ctx.input(1), ctx.inputs[2]];
      const [batch, classes, ...rest] = scores.dims;
      const dims = [batch, ...rest];
      if (scores.dims.length < 2 || labels.dims.join() !== dims.join())
        throw new KernelError(`${op} of scores [${scores.dims}] and labels [${labels.dims}]`);
      if (weights && weights.size !== classes)
        throw new KernelError(`${op} of ${classes} classes with weights [${weights.dims}]`);
      let x = scores;
      if (softmax) {
        x = ctx.wants(1) ? ctx.output(1, scores.dims) : ctx.temp(scores.dims, scores.dtype);
        ctx.call(logSoftmax, { axis: 1 }, [scores], [x]);
      }
      const each = reduction === 'none';
      const y = ctx.output(0, each ? dims : [], scores.dtype);
      const weighs = reduction === 'mean';
      const losses = each ? y : ctx.temp([labels.size], DType.float32);
      const labelWeights = weighs ? ctx.temp([labels.size], DType.float32) : undefined;
      ctx.dispatch<LossSpec>({
        shader: LOSS,
        spec: {
          weighted: weights !== undefined,
          ignores: ignored !== undefined,
          weighs,
          from: x.storage,
          to: losses.storage,
        },
        inputs: { x, labels, ...(weights ? { weights } : {}) },
        outputs: { losses, ...(labelWeights ? { label_weights: labelWeights } : {}) },
        uniforms: { count: labels.size, classes, inner: sizeOf(rest), ...(ignored === undefined ? {} : { ignored }) },
        i32: ['ignored'],
        workgroups: linearWorkgroups(labels.size, ctx.device),
      });
      if (each) return;
      const sumOf = (values: Tensor, target: Tensor): Tensor => {
        reduceSumOf(ctx, values, [0], target);
        return target;
      };
      if (!labelWeights) {
        sumOf(losses, y);
        return;
      }
      const [loss, weight] = [losses, labelWeights].map((values) => sumOf(values, ctx.temp([], DType.float32)));
      ctx.dispatch({
        shader: QUOTIENT,
        spec: { to: y.storage },
        inputs: { loss, weight },
        outputs: { y },
        uniforms: { count: 1 },
        workgroups: [1, 1, 1],
      });
    },
  };
}

export default [kernel('NegativeLogLikelihoodLoss', false), kernel('SoftmaxCrossEntropyLoss', true)];
