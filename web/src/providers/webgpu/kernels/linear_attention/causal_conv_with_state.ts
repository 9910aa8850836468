// CausalConvWithState: convolves each channel separately, over the positions up to the current one; the state has the
// positions before the first.
import {
  type Context,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type StorageType,
} from '../../../../contract/kernel';
import { FLOATS, laneAliases, linearMain, linearWorkgroups, load, mathFunctions, sizeOf, stored } from '../../wgsl';

interface CausalSpec extends Spec {
  /** True if channels are the last axis, not positions. */
  readonly last: boolean;
  readonly past: boolean;
  readonly bias: boolean;
  readonly silu: boolean;
  readonly type: StorageType;
}

/**
 * WGSL of place(batch, channel, position, positions), and of before(batch, channel, position), which reads positions in
 * the state.
 */
function reading({ last, past, type }: Pick<CausalSpec, 'last' | 'past' | 'type'>): string {
  const place = last
    ? '(batch * positions + position) * u.channels + channel'
    : '(batch * u.channels + channel) * positions + position';
  const state = past
    ? load(type, 1, 'past[u.past_start + place(batch, channel, u32(position + i32(u.states)), u.states)]')
    : '0.0';
  return `fn place(batch: u32, channel: u32, position: u32, positions: u32) -> u32 { return ${place}; }
fn before(batch: u32, channel: u32, position: i32) -> f32 {
  if (position >= 0) { return ${load(type, 1, 'x[place(batch, channel, u32(position), u.positions)]')}; }
  return ${state};
}
`;
}

/**
 * Statements that find \`batch\`, \`channel\` and \`position\` of element \`index\` in [batch, channels, positions], or
 * with channels last.
 */
function whereIs(last: boolean, index: string, positions: string): string {
  return last
    ? `  let channel = ${index} % u.channels;
  let position = ${index} / u.channels % ${positions};
  let batch = ${index} / (u.channels * ${positions});`
    : `  let position = ${index} % ${positions};
  let channel = ${index} / ${positions} % u.channels;
  let batch = ${index} / (u.channels * ${positions});`;
}

const CONVOLVE: Shader<CausalSpec> = {
  name: 'causal_conv_with_state',
  wgsl: (spec) => `${laneAliases(1)}
${mathFunctions('sigmoid')}
${reading(spec)}${linearMain(`${whereIs(spec.last, 'i', 'u.positions')}
  var sum = ${spec.bias ? load(spec.type, 1, 'bias[channel]') : '0.0'};
  for (var tap = 0u; tap < u.taps; tap++) {
    sum += ${load(spec.type, 1, 'weights[channel * u.taps + tap]')}
      * before(batch, channel, i32(position) - i32((u.taps - 1u - tap) * u.dilation));
  }
  y[i] = ${stored(spec.type, 1, spec.silu ? 'sum * sigmoid(sum)' : 'sum')};`)}`,
};

// Slot s of the window is the state after position `positions - slots + s`.
const CARRY: Shader<CausalSpec> = {
  name: 'causal_conv_with_state__carry',
  wgsl: (spec) =>
    `${reading(spec)}${linearMain(`  let slot = i / u.slot_size;
  let within = i % u.slot_size;
${whereIs(spec.last, 'within', 'u.states')}
  let after = i32(u.positions + slot + 1u) - i32(u.slots);
  var value = 0.0;
  if (after > 0 || slot + 1u == u.slots) { value = before(batch, channel, after - i32(u.states) + i32(position)); }
  present[i] = ${stored(spec.type, 1, 'value')};`)}`,
};

interface CausalAttributes {
  readonly silu: boolean;
  readonly dilation: number;
  readonly window: number;
  readonly last: boolean;
}

/** input, weight, bias, past_state */
function resolve(ctx: Context, { silu, dilation, window, last }: CausalAttributes): void {
  const [x, weights, bias, past] = [ctx.input(0), ctx.input(1), ctx.inputs[2], ctx.inputs[3]];
  const [batch, second, ...rest] = x.dims;
  const [channels, , taps] = weights.dims;
  const positions = last ? second : rest[0];
  const fits =
    weights.dims.length === 3 &&
    weights.dims[1] === 1 &&
    (last ? sizeOf(rest) === channels : rest.length === 1 && second === channels);
  if (!fits) throw new KernelError(`CausalConvWithState of [${x.dims}] with weights [${weights.dims}]`);
  const states = (taps - 1) * dilation;
  const own = last ? [batch, states, ...rest] : [batch, channels, states];
  const dims = window > 0 ? [window, ...own] : own;
  if (past && past.dims.join() !== dims.join())
    throw new KernelError(`CausalConvWithState: a past state [${past.dims}] that should be [${dims}]`);
  const slots = Math.max(1, window);
  const size = sizeOf(own);
  const y = ctx.output(0, x.dims);
  const spec: CausalSpec = { last, past: past !== undefined, bias: bias !== undefined, silu, type: x.storage };
  const uniforms = { channels, positions, states, past_start: (slots - 1) * size };
  ctx.dispatch({
    shader: CONVOLVE,
    spec,
    inputs: { x, weights, ...(bias && { bias }), ...(past && { past }) },
    outputs: { y },
    uniforms: { ...uniforms, count: x.size, taps, dilation },
    workgroups: linearWorkgroups(x.size, ctx.device),
  });
  if (!ctx.wants(1)) return;
  const present = ctx.output(1, dims);
  ctx.dispatch({
    shader: CARRY,
    spec,
    inputs: { x, ...(past && { past }) },
    outputs: { present },
    uniforms: { ...uniforms, count: present.size, slot_size: size, slots },
    workgroups: linearWorkgroups(present.size, ctx.device),
  });
}

const causalConvWithState: Kernel<CausalAttributes> = {
  op: 'CausalConvWithState',
  types: [FLOATS],
  requires: [{ attribute: 'ndim', values: [1], otherwise: 'more than one spatial axis' }],
  attributes: (given) => ({
    silu: ['silu', 'swish'].includes(given.text('activation', 'none')),
    dilation: given.integer('dilation', 1),
    window: given.integer('state_window', 0),
    last: given.integer('channels_last', 0) !== 0,
  }),
  resolve,
};

export default [causalConvWithState];
