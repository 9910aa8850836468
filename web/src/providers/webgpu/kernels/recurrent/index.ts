// LSTM, GRU and RNN: the input's products for all steps at once, then a dispatch for each step.
import type { Attributes } from '../../../../contract/attributes';
import {
  type Context,
  type DTypeName,
  type Kernel,
  KernelError,
  type Shader,
  type Spec,
  type Tensor,
  type Uniforms,
} from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { bindingCount } from '../../wgsl/large';
import { linearMain, linearWorkgroups } from '../../wgsl/linear';
import { stridesOf } from '../../../../contract/shape';
import { stridedCopy } from '../../wgsl/strided_copy';
import { permuted, permuteInto } from '../shared/permute';
import { multiply } from '../matmul/product/multiply';
import { dequantizeLinear, dynamicQuantizeLinear } from '../quantization/quantize_linear';
import { type GateFunction, gateFunctions } from './activations';
import { type Cell, GATES, STEP, type StepSpec } from './step';

interface LayerAttributes {
  readonly hidden: number;
  readonly directions: readonly boolean[];
  /** For each direction. */
  readonly functions: readonly (readonly GateFunction[])[];
  readonly clip: number;
  readonly coupled: boolean;
  readonly linearFirst: boolean;
  /** Products read the old state as quantized to uint8 by its range. */
  readonly quantizedState: boolean;
  /** X and Y with the batch first. */
  readonly batchFirst: boolean;
}

const DEFAULTS = { LSTM: ['Sigmoid', 'Tanh', 'Tanh'], GRU: ['Sigmoid', 'Tanh'], RNN: ['Tanh'] } as const;
type Layer = keyof typeof DEFAULTS;
const CELLS: { readonly [layer in Layer]: Cell } = { LSTM: 'lstm', GRU: 'gru', RNN: 'rnn' };

const parse =
  (layer: Layer) =>
  (a: Attributes): LayerAttributes => {
    const direction = a.text('direction', 'forward');
    const directions = { forward: [false], reverse: [true], bidirectional: [false, true] }[direction];
    if (!directions) throw new KernelError(`${layer}: direction ${direction}`);
    const each = DEFAULTS[layer].length;
    const given = a.texts('activations');
    const names = given.length > 0 ? given : directions.flatMap(() => [...DEFAULTS[layer]]);
    const functions = gateFunctions(names, a.numbers('activation_alpha'), a.numbers('activation_beta'));
    return {
      hidden: a.integer('hidden_size', 0),
      directions,
      functions: directions.map((_, d) => functions.slice(d * each, (d + 1) * each)),
      clip: a.number('clip', 0),
      coupled: a.integer('input_forget', 0) !== 0,
      linearFirst: a.integer('linear_before_reset', 0) !== 0,
      quantizedState: a.integer('quantized_state', 0) !== 0,
      batchFirst: a.integer('layout', 0) !== 0,
    };
  };

function resolve(ctx: Context, layer: Layer, a: LayerAttributes): void {
  const x = a.batchFirst ? permuted(ctx, ctx.input(0), [1, 0, 2]) : ctx.input(0);
  const [w, r, bias, lengths] = [ctx.input(1), ctx.input(2), ctx.inputs[3], ctx.inputs[4]];
  const [times, batch] = x.dims;
  const hidden = a.hidden || r.dims[2];
  const count = a.directions.length;
  const state = [count, batch, hidden];
  if (w.dims[0] !== count || w.dims[1] !== GATES[CELLS[layer]] * hidden)
    throw new KernelError(`${layer} of ${hidden} with weights [${w.dims}]`);
  const initial = (i: number) => {
    const given = ctx.inputs[i];
    return given && a.batchFirst ? permuted(ctx, given, [1, 0, 2]) : given;
  };
  // Outputs in the order in which the steps write them, and the moves that follow to the caller's order.
  const moves: (() => void)[] = [];
  const out = (i: number, dims: readonly number[], perm: readonly number[]): Tensor => {
    if (!ctx.wants(i)) return ctx.temp(dims, x.dtype);
    if (!a.batchFirst) return ctx.output(i, dims);
    const target = ctx.output(
      i,
      perm.map((axis) => dims[axis]),
    );
    const temp = ctx.temp(dims, x.dtype);
    moves.push(() => permuteInto(ctx, temp, perm, target));
    return temp;
  };
  const y = out(0, [times, count, batch, hidden], [2, 0, 1, 3]);
  const lastH = out(1, state, [1, 0, 2]);
  const cell = layer === 'LSTM' ? out(2, state, [1, 0, 2]) : undefined;
  if (y.size === 0) return;
  const initialC = initial(6);
  if (cell) {
    if (initialC) stridedCopy(ctx, initialC, { strides: stridesOf(state) }, cell, { strides: stridesOf(state) }, state);
    else fillZero(ctx, cell);
  }
  a.directions.forEach((reverse, direction) => {
    layerOfDirection(ctx, layer, a, {
      x,
      w,
      r,
      bias,
      lengths,
      initialH: initial(5),
      peepholes: layer === 'LSTM' ? ctx.inputs[7] : undefined,
      y,
      lastH,
      cell,
      hidden,
      direction,
      reverse,
    });
  });
  for (const move of moves) move();
}

interface Direction {
  readonly x: Tensor;
  readonly w: Tensor;
  readonly r: Tensor;
  readonly bias?: Tensor;
  readonly lengths?: Tensor;
  readonly initialH?: Tensor;
  readonly peepholes?: Tensor;
  readonly y: Tensor;
  readonly lastH: Tensor;
  readonly cell?: Tensor;
  readonly hidden: number;
  readonly direction: number;
  readonly reverse: boolean;
}

function layerOfDirection(ctx: Context, layer: Layer, a: LayerAttributes, d: Direction): void {
  const [times, batch, size] = d.x.dims;
  const columns = d.w.dims[1];
  // The input's products: x [times * batch, size] by the transposed weights of this direction.
  const transposed = ctx.temp([size, columns], d.w.dtype);
  stridedCopy(
    ctx,
    d.w,
    { offset: d.direction * columns * size, strides: [1, size] },
    transposed,
    { strides: [columns, 1] },
    [size, columns],
  );
  const xw = ctx.temp([times * batch, columns], d.x.dtype);
  // With all its optional inputs an LSTM binds more tensors than every device allows: the biases are then added to the
  // input's products.
  const optional = [d.bias, d.lengths, d.initialH ?? (a.quantizedState ? d.lastH : undefined), d.peepholes].filter(
    (given) => given !== undefined,
  );
  const bound = bindingCount([xw, d.r, d.y, d.lastH, ...(d.cell ? [d.cell] : []), ...optional], ctx.device);
  const early =
    layer === 'LSTM' && d.bias && bound > ctx.device.maxStorageBuffersPerStage
      ? summedBiases(ctx, d.bias, d.direction, columns)
      : undefined;
  multiply(ctx, {
    left: 'matrix',
    a: d.x,
    b: transposed,
    y: xw,
    bias: early,
    m: times * batch,
    n: columns,
    depth: size,
    taps: 1,
    z: 1,
    lda: size,
    ldb: columns,
    ldy: columns,
  });
  const reset = layer === 'GRU' && !a.linearFirst ? ctx.temp([batch, d.hidden], d.x.dtype) : undefined;
  for (let step = 0; step < times; step++) {
    const oldState = a.quantizedState && (step > 0 || d.initialH) ? quantizedState(ctx, a, d, step) : undefined;
    const spec: StepSpec = {
      cell: CELLS[layer],
      functions: a.functions[d.direction],
      bias: d.bias !== undefined && !early,
      lengths: d.lengths !== undefined,
      initial: d.initialH !== undefined,
      peepholes: d.peepholes !== undefined,
      coupled: a.coupled,
      clip: a.clip > 0,
      linearFirst: a.linearFirst,
      first: step === 0,
      old: oldState !== undefined,
      storage: d.x.storage,
    };
    const inputs = {
      xw,
      r: d.r,
      ...(d.bias && !early && { bias: d.bias }),
      ...(d.lengths && { lengths: d.lengths }),
      ...(oldState ? { old_h: oldState } : d.initialH && step === 0 && { initial_h: d.initialH }),
      ...(d.peepholes && { peepholes: d.peepholes }),
    };
    const uniforms: Uniforms = {
      count: batch * d.hidden,
      hidden: d.hidden,
      batch,
      times,
      step,
      direction: d.direction,
      directions: a.directions.length,
      reverse: d.reverse ? 1 : 0,
      ...(a.clip > 0 && { clip: a.clip }),
    };
    const common = { uniforms, f32: ['clip'], workgroups: linearWorkgroups(batch * d.hidden, ctx.device) };
    if (reset) {
      const resetSpec: StepSpec = { ...spec, cell: 'gru_reset' };
      ctx.dispatch({
        shader: { ...STEP, name: 'gru_reset__any' },
        spec: resetSpec,
        inputs,
        outputs: { y: d.y, reset },
        ...common,
      });
    }
    ctx.dispatch({
      shader: { ...STEP, name: `${CELLS[layer]}_step__any` },
      spec,
      inputs: { ...inputs, ...(reset && { reset }) },
      outputs: { y: d.y, last_h: d.lastH, ...(d.cell && { cell: d.cell }) },
      ...common,
    });
  }
}

interface StateSpec {
  readonly first: boolean;
  readonly lengths: boolean;
}

// The state before a step, [batch, hidden]; zeros for sequences that ended earlier.
const OLD_STATE: Shader<StateSpec & Spec> = {
  name: 'recurrent_old_state__any',
  wgsl: ({ first, lengths }) =>
    linearMain(
      first
        ? '  old[i] = initial_h[u.direction * u.count + i];'
        : `  let length = ${lengths ? 'min(u32(lengths[i / u.hidden]), u.times)' : 'u.times'};
  let before = u.step - 1u;
  let time = select(before, length - 1u - before, u.reverse == 1u && before < length);
  old[i] = y[(time * u.directions + u.direction) * u.count + i];`,
    ),
};

function quantizedState(ctx: Context, a: LayerAttributes, d: Direction, step: number): Tensor {
  const [times, batch] = d.x.dims;
  const dims = [batch, d.hidden];
  const [old, quantized, again] = [ctx.temp(dims, d.x.dtype), ctx.temp(dims, DType.uint8), ctx.temp(dims, d.x.dtype)];
  const [scale, zero] = [ctx.temp([], DType.float32), ctx.temp([], DType.uint8)];
  const first = step === 0;
  const inputs: { [name: string]: Tensor } = first
    ? { initial_h: d.initialH! }
    : { y: d.y, ...(d.lengths && { lengths: d.lengths }) };
  ctx.dispatch({
    shader: OLD_STATE,
    spec: { first, lengths: d.lengths !== undefined },
    inputs,
    outputs: { old },
    uniforms: {
      count: old.size,
      hidden: d.hidden,
      times,
      step,
      direction: d.direction,
      directions: a.directions.length,
      reverse: d.reverse ? 1 : 0,
    },
    workgroups: linearWorkgroups(old.size, ctx.device),
  });
  ctx.call(dynamicQuantizeLinear, undefined, [old], [quantized, scale, zero]);
  ctx.call(dequantizeLinear, { axis: 1, block: 0, dtype: 0 }, [quantized, scale, zero], [again]);
  return again;
}

/** The biases of a direction's input and of its state, added. */
function summedBiases(ctx: Context, bias: Tensor, direction: number, columns: number): Tensor {
  const sums = ctx.temp([columns], bias.dtype);
  ctx.dispatch({
    shader: {
      name: 'recurrent_biases__any',
      wgsl: () => linearMain('  y[i] = bias[u.start + i] + bias[u.start + u.count + i];'),
    },
    spec: {},
    inputs: { bias },
    outputs: { y: sums },
    uniforms: { count: columns, start: 2 * direction * columns },
    workgroups: linearWorkgroups(columns, ctx.device),
  });
  return sums;
}

function fillZero(ctx: Context, target: Tensor): void {
  ctx.dispatch({
    shader: { name: 'zero__any', wgsl: () => linearMain('  y[i] = 0;') },
    spec: {},
    inputs: {},
    outputs: { y: target },
    uniforms: { count: target.size },
    workgroups: linearWorkgroups(target.size, ctx.device),
  });
}

const FLOATS: readonly DTypeName[] = ['float32', 'float16'];
const kernel = (op: Layer): Kernel<LayerAttributes> => ({
  op,
  types: [FLOATS, FLOATS, FLOATS, FLOATS, ['int32'], FLOATS, FLOATS, FLOATS],
  attributes: parse(op),
  resolve: (ctx, a) => resolve(ctx, op, a),
});

export default (Object.keys(DEFAULTS) as Layer[]).map(kernel);
