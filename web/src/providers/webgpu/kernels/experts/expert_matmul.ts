// Mixtures of experts: products of rows with the matrices of the experts to which each row is assigned.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { FLOATS, inLanes, load, stored, teamMain, teamSize, teamWorkgroups } from '../../wgsl';
import { inFours } from '../quantization/blocks/few_bits';
import { Dialect } from '../../../../schema/dialect';

interface ExpertSpec extends Spec {
  /** Bits of a weight; 0: floats. */
  readonly bits: number;
  /** Elements of a step: 4 floats, the weights in 4 bytes, or one weight if rows are not multiples of these. */
  readonly step: number;
  readonly zeros: boolean;
  readonly blocked: boolean;
  readonly bias: boolean;
  readonly scales: StorageType;
  readonly team: number;
  readonly result: StorageType;
}

const PRODUCT: Shader<ExpertSpec> = {
  name: 'expert_matmul',
  wgsl(spec) {
    const { bits, step, zeros, blocked, bias, scales, team, result } = spec;
    const mask = `${2 ** bits - 1}u`;
    const place = blocked ? 'block' : 'n';
    const zero = zeros
      ? `f32((zeros[${blocked ? 'column' : 'expert'} * u.zero_bytes + ${place} * ${bits}u / 8u]
          >> (${place} * ${bits}u % 8u)) & ${mask})`
      : `${2 ** bits / 2}.0`;
    const quantized = () => `    let k = r * ${step}u;
    let block = ${blocked ? 'k / u.block' : '0u'};
    let scale = ${load(scales, 1, `scales[column * u.blocks + block]`)};
    let zero = ${zero};
${
  step > 1
    ? `    let bytes = w[column * u.steps + r];\n${inFours(bits)}`
    : `    let weight = (w[column * u.row_bytes + k * ${bits}u / 8u] >> (k * ${bits}u % 8u)) & ${mask};
    sum += f32(x[row_0 + k]) * (f32(weight) - zero) * scale;`
}`;
    const floats =
      step > 1
        ? '    sum += dot(vec4<f32>(x[row_0 + r]), vec4<f32>(w[column * u.steps + r]));'
        : '    sum += f32(x[row_0 + r]) * f32(w[column * u.steps + r]);';
    return teamMain({
      team,
      neighbors: false,
      accumulators: [{ name: 'sum', type: 'f32', start: '0.0' }],
      prepare: `  let n = o % u.n;
  let expert = u32(choices[o / u.n]);
  let column = expert * u.n + n;
  let row_0 = o / u.n / u.each * u.k${step > 1 ? ' / 4u' : ''};
  let first = 0u;
  let end = u.steps;`,
      step: bits ? quantized().replaceAll('a[', 'x[') : floats,
      merge: '      sum += other_sum;',
      finish: `    y[o] = ${stored(result, 1, `sum${bias ? ' + f32(bias[column])' : ''}`)};`,
    });
  },
};

interface Attributes {
  readonly bits: number;
  /** Weights with one scale; 0: those of a row. */
  readonly block: number;
}

function resolve(ctx: Context, { bits, block }: Attributes): void {
  const [x, choices, w, scales, zeros, bias] = [
    ctx.input(0),
    ctx.input(1),
    ctx.input(2),
    ctx.inputs[3],
    ctx.inputs[4],
    ctx.inputs[5],
  ];
  const [experts, n] = w.dims;
  const k = x.dims[1];
  const blocks = block ? k / block : 1;
  const rowBytes = (k * bits) / 8;
  if (w.dims[2] !== (bits ? rowBytes : k) || (bits && scales?.size !== experts * n * blocks)) {
    throw new KernelError(
      `experts [${w.dims}] with scales [${scales?.dims ?? ''}] do not fit X of [${x.dims}] in blocks of ${block}`,
    );
  }
  if (x.dims[0] !== choices.size && x.dims[0] !== choices.dims[0])
    throw new KernelError(`choices [${choices.dims}] do not fit X of [${x.dims}]`);
  const y = ctx.output(0, [...choices.dims, n]);
  if (y.size === 0) return;
  const whole = bits ? 32 / bits : 4;
  const step = k % whole === 0 && (!block || block % whole === 0) ? whole : 1;
  const steps = k / step;
  const lanes = step > 1 ? 4 : 1;
  const team = teamSize(y.size, steps, ctx.device);
  ctx.dispatch({
    shader: PRODUCT,
    spec: {
      bits,
      step,
      zeros: zeros !== undefined,
      blocked: block > 0,
      bias: bias !== undefined,
      scales: scales?.storage ?? 'f32',
      team,
      result: y.storage,
    },
    inputs: {
      x: inLanes(x, lanes),
      choices,
      w: inLanes(w, lanes),
      ...(bits && scales && { scales }),
      ...(zeros && { zeros }),
      ...(bias && { bias }),
    },
    outputs: { y },
    uniforms: {
      count: y.size,
      n,
      k,
      each: choices.size / x.dims[0],
      steps,
      block: block || 1,
      blocks,
      row_bytes: rowBytes,
      zero_bytes: Math.ceil(((block ? blocks : n) * bits) / 8),
    },
    workgroups: teamWorkgroups(y.size, team, ctx.device),
  });
}

const expertMatMul: Kernel<Attributes> = {
  op: Dialect.EXPERT_MATMUL,
  domain: Dialect.INTERNAL_DOMAIN,
  types: [FLOATS, ['int32'], ['uint8', ...FLOATS], FLOATS, ['uint8'], FLOATS],
  attributes: (a) => ({ bits: a.integer('bits', 0), block: a.integer('block_size', 0) }),
  resolve,
};

export default [expertMatMul];
