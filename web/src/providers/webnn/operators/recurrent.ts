// Recurrent layers.
import type { Requirement } from '../../../contract/kernel';
import { RuntimeError } from '../../../errors';
import { ErrorCode } from '../../../schema';
import type { MlOperand } from '../ml';
import { type Call, FLOATS, type MlOperator } from '../operator';
import { type Formula, formula } from './shared/formula';

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

/** WebNN has the functions of a direction, ONNX's model those of each. */
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
  const made = f.plain(method, input, weight, recurrent, input.shape[0], hiddenSize, {
    ...(bias && { bias: half(0), recurrentBias: half(1) }),
    ...(hidden && { initialHiddenState: turned(hidden, [1, 0, 2]) }),
    ...(cell && { initialCellState: turned(cell, [1, 0, 2]) }),
    ...(activations && { activations }),
    ...(method === 'gru' && { resetAfter: attributes.integer('linear_before_reset', 0) === 1 }),
    layout: method === 'lstm' ? 'iofg' : 'zrn',
    direction: DIRECTIONS[attributes.text('direction', 'forward')] ?? 'forward',
    returnSequence: wants[0],
  }) as unknown as readonly MlOperand[];
  const states = made.slice(0, method === 'lstm' ? 2 : 1).map((state) => turned(state, [1, 0, 2]));
  return [wants[0] ? turned(made.at(-1)!, [2, 0, 1, 3]) : states[0], ...states].slice(0, wants.length);
}

export default [
  { op: 'LSTM', types: [FLOATS], requires: REQUIRES, emit: formula((f, x, call) => layer(f, 'lstm', x, call)) },
  { op: 'GRU', types: [FLOATS], requires: REQUIRES, emit: formula((f, x, call) => layer(f, 'gru', x, call)) },
] satisfies MlOperator[];
