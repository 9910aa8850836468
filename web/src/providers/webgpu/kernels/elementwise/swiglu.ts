// Gated activations: one half is multiplied by a gate made from the other.
import {
  type Kernel,
  KernelError,
  MICROSOFT_DOMAIN,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import {
  elementwise,
  elementwiseShader,
  FLOATS,
  inLanes,
  laneAliases,
  type Lanes,
  linearMain,
  linearWorkgroups,
  load,
  mathFunctions,
  stored,
} from '../../wgsl';
import { functionName, functionText, scalarFunction } from '../../wgsl/scalar_functions';

const [SWISH, GELU] = ['Swish', 'Gelu'].map(scalarFunction);
const SWIGLU = elementwiseShader(
  'swiglu',
  () => `${mathFunctions(...SWISH.math)}\n${functionText(SWISH)}
fn apply(a: T, b: T) -> R { return ${functionName(SWISH)}(a, u.alpha) * b; }`,
);

const swiglu: Kernel<number> = {
  op: 'SwiGLU',
  types: [FLOATS],
  attributes: (given) => given.number('alpha', 1),
  resolve(ctx, alpha) {
    const [a, b] = [ctx.input(0), ctx.input(1)];
    if (a.dims.join() !== b.dims.join())
      throw new KernelError(`SwiGLU: the gate [${a.dims}] and the value [${b.dims}] differ in shape`);
    elementwise(ctx, SWIGLU, { a, b }, ctx.output(0, a.dims), { uniforms: { alpha }, f32: ['alpha'] });
  },
};

interface SplitSpec extends Spec {
  readonly lanes: Lanes;
  readonly type: StorageType;
}

// A row of x is a left and a right half, of u.half vectors each.
const BIAS_SPLIT_GELU: Shader<SplitSpec> = {
  name: 'bias_split_gelu',
  wgsl: ({ lanes, type }) => `${laneAliases(lanes)}\n${mathFunctions(...GELU.math)}\n${functionText(GELU)}
${linearMain(`  let column = i % u.half;
  let at = i / u.half * 2u * u.half + column;
  let left = ${load(type, lanes, 'x[at]')} + ${load(type, lanes, 'bias[column]')};
  let right = ${load(type, lanes, 'x[at + u.half]')} + ${load(type, lanes, 'bias[column + u.half]')};
  y[i] = ${stored(type, lanes, `left * ${functionName(GELU)}(right)`)};`)}`,
};

const biasSplitGelu: Kernel = {
  op: 'BiasSplitGelu',
  domain: MICROSOFT_DOMAIN,
  types: [FLOATS],
  resolve(ctx) {
    const [x, bias] = [ctx.input(0), ctx.input(1)];
    const width = x.dims.at(-1) ?? 0;
    if (width % 2 !== 0 || bias.size !== width)
      throw new KernelError(`BiasSplitGelu: rows of ${width} and a bias of ${bias.size} are not two halves`);
    const half = width / 2;
    const y = ctx.output(0, [...x.dims.slice(0, -1), half]);
    const lanes = half % 4 === 0 ? 4 : 1;
    const count = y.size / lanes;
    ctx.dispatch({
      shader: BIAS_SPLIT_GELU,
      spec: { lanes, type: x.storage },
      inputs: { x: inLanes(x, lanes), bias: inLanes(bias, lanes) },
      outputs: { y: inLanes(y, lanes) },
      uniforms: { count, half: half / lanes },
      workgroups: linearWorkgroups(count, ctx.device),
    });
  },
};

export default [swiglu, biasSplitGelu];
