// Recurrent layers.
import type { Requirement } from '../../../contract/kernel';
import { RuntimeError } from '../../../errors';
import { ErrorCode } from '../../../schema';
import type { Formula } from '../formula';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { formula } from './shared/calls';

const REQUIRES: readonly Requirement[] = [
  { noInput: 4, otherwise: 'lengths of sequences' },
  { noInput: 7, otherwise: 'peepholes, which browsers compute otherwise' },
  { attribute: 'clip', values: [], otherwise: 'a clip' },
  { attribute: 'input_forget', values: [0], otherwise: 'coupled gates' },
  { attribute: 'activations', values: ['Sigmoid', 'Tanh', 'Relu'], otherwise: 'these activations' },
  { attribute: 'activation_alpha', values: [], otherwise: 'these activations' },
  { attribute: 'quantized_state', values: [0], otherwise: 'quantized states' },
];
const DIRECTIONS: { readonly [direction: string]: string } = { reverse: 'backward', bidirectional: 'both' };

/** WebNN has the functions once for all directions, ONNX's model those of each. */
function activationsOf({ attributes }: Call, count: number): readonly string[] | undefined {
  const all = attributes.texts('activations').map((name) => name.toLowerCase());
  const first = all.slice(0, count);
  if (`${all.slice(count)}` !== '' && `${all.slice(count)}` !== `${first}`)
    throw new RuntimeError(ErrorCode.not_implemented, 'WebNN has the same activations for both directions');
  return all.length > 0 ? first : undefined;
}

function layer(f: Formula, method: 'lstm' | 'gru', x: readonly MlOperand[], call: Call): readonly MlOperand[] {
  const { attributes, wants } = call;
  const turned = (one: MlOperand, permutation: readonly number[]) =>
    attributes.integer('layout', 0) ? f.plain('transpose', one, { permutation: [...permutation] }) : one;
  const input = turned(x[0], [1, 0, 2]);
  const [, weight, recurrent, bias, , hidden, cell] = x;
  const hiddenSize = recurrent.shape[2];
  const half = (start: number) =>
    f.plain('slice', bias, [0, start * weight.shape[1]], [weight.shape[0], weight.shape[1]]);
  const activations = activationsOf(call, method === 'lstm' ? 3 : 2);
  const made = f.several(method, input, weight, recurrent, input.shape[0], hiddenSize, {
    ...(bias && { bias: half(0), recurrentBias: half(1) }),
    ...(hidden && { initialHiddenState: turned(hidden, [1, 0, 2]) }),
    ...(cell && { initialCellState: turned(cell, [1, 0, 2]) }),
    ...(activations && { activations }),
    ...(method === 'gru' && { resetAfter: attributes.integer('linear_before_reset', 0) === 1 }),
    layout: method === 'lstm' ? 'iofg' : 'zrn',
    direction: DIRECTIONS[attributes.text('direction', 'forward')] ?? 'forward',
    returnSequence: wants[0],
  });
  const states = made.slice(0, method === 'lstm' ? 2 : 1).map((state) => turned(state, [1, 0, 2]));
  return [wants[0] ? turned(made.at(-1)!, [2, 0, 1, 3]) : states[0], ...states].slice(0, wants.length);
}

/** Step by step: WebNN has no plain recurrence. */
function plainLayer(f: Formula, x: readonly MlOperand[], { attributes, wants }: Call): readonly MlOperand[] {
  const first = attributes.integer('layout', 0) ? 1 : 0;
  const turned = (one: MlOperand, permutation: readonly number[]) =>
    first ? f.plain('transpose', one, { permutation: [...permutation] }) : one;
  const input = turned(x[0], [1, 0, 2]);
  const initial = x[5] && turned(x[5], [1, 0, 2]);
  const [steps, batch, width] = input.shape;
  const [count, hidden] = x[2].shape;
  const direction = attributes.text('direction', 'forward');
  const names = attributes.texts('activations');
  const part = (of: MlOperand, at: readonly number[], shape: readonly number[]) =>
    f.reshape(
      f.plain('slice', of, [...at, ...of.shape.slice(at.length).map(() => 0)], [1, ...shape].slice(-of.shape.length)),
      shape,
    );
  const each = Array.from({ length: count }, (_, d) => {
    const weights = part(x[1], [d], [hidden, width]);
    const recurrent = part(x[2], [d], [hidden, hidden]);
    const [own, old] = [0, hidden].map((start) => x[3] && part(x[3], [d, start], [hidden]));
    const backwards = direction === 'reverse' || d === 1;
    let state = initial
      ? part(initial, [d], [batch, hidden])
      : f.constant(new Array<number>(batch * hidden).fill(0), [batch, hidden], input.dataType);
    const states = new Array<MlOperand>(steps);
    for (let i = 0; i < steps; i++) {
      const t = backwards ? steps - 1 - i : i;
      const product = f.plain('gemm', part(input, [t], [batch, width]), weights, {
        bTranspose: true,
        ...(own && { c: own }),
      });
      const before = f.plain('gemm', state, recurrent, { bTranspose: true, ...(old && { c: old }) });
      state = f.of((names[d] ?? 'Tanh').toLowerCase(), f.of('add', product, before));
      states[t] = state;
    }
    return { states, last: state };
  });
  const stacked = (all: readonly MlOperand[], shape: readonly number[]) =>
    f.reshape(f.plain('concat', [...all], 0), [all.length, ...shape]);
  const last = stacked(
    each.map((one) => one.last),
    [batch, hidden],
  );
  const whole = stacked(Array.from({ length: steps }, (_, t) => each.map(({ states }) => states[t])).flat(), [
    batch,
    hidden,
  ]);
  const y = turned(f.reshape(whole, [steps, count, batch, hidden]), [2, 0, 1, 3]);
  return [y, turned(last, [1, 0, 2])].slice(0, wants.length);
}

export default [
  { op: 'RNN', types: [FLOATS], requires: REQUIRES, emit: formula(plainLayer) },
  { op: 'LSTM', types: [FLOATS], requires: REQUIRES, emit: formula((f, x, call) => layer(f, 'lstm', x, call)) },
  { op: 'GRU', types: [FLOATS], requires: REQUIRES, emit: formula((f, x, call) => layer(f, 'gru', x, call)) },
] satisfies MlOperator[];
