// One step of a recurrent layer: each thread makes one element of the new state from the whole of the old one.
import type { Shader, Spec, StorageType } from '../../../../contract/kernel';
import { laneAliases, stored } from '../../wgsl/lanes';
import { linearMain } from '../../wgsl/linear';
import { mathFunctions } from '../../wgsl/math';
import type { GateFunction } from './activations';

/** lstm: gates i, o, f, c; gru: z, r, h (in two dispatches unless `linearFirst`); rnn: one. */
export type Cell = 'lstm' | 'gru' | 'gru_reset' | 'rnn';

export interface StepSpec extends Spec {
  readonly cell: Cell;
  readonly functions: readonly GateFunction[];
  readonly bias: boolean;
  readonly lengths: boolean;
  readonly initial: boolean;
  readonly peepholes: boolean;
  readonly coupled: boolean;
  readonly clip: boolean;
  readonly linearFirst: boolean;
  /** True for the first step, which reads the initial state. */
  readonly first: boolean;
  /** The old state is a separate binding, old_h [batch, hidden]. */
  readonly old: boolean;
  readonly storage: StorageType;
}

export const GATES: { readonly [cell in Cell]: number } = { lstm: 4, gru: 3, gru_reset: 3, rnn: 1 };

export const STEP: Shader<StepSpec> = { name: 'recurrent_step', wgsl: text };

/**
 * Bindings: xw [time, batch, gates * hidden] (the input's part, without bias), r (weights [directions, gates * hidden,
 * hidden]), bias, lengths, initial_h [directions, batch, hidden], peepholes; in and out: y [time, directions, batch,
 * hidden], cell and last_h [directions, batch, hidden]; reset: r * h of GRU, [batch, hidden].
 */
function text(spec: StepSpec): string {
  const { cell, functions, bias, lengths, initial, peepholes, coupled, clip, linearFirst, first, old, storage } = spec;
  const gates = GATES[cell];
  const all = Array.from({ length: gates }, (_, gate) => gate);
  const store = (value: string) => stored(storage, 1, value);
  // The input of the gates is clipped; the state of an LSTM's cell is not, as in onnxruntime.
  const names = functions.map(
    ({ text: expression }, i) =>
      `fn act_${i}(sum: f32) -> f32 { let x = ${clip && i < 2 ? 'bounded(sum, -u.clip, u.clip)' : 'sum'};
        return ${expression}; }`,
  );
  const oldState = (k: string) =>
    old
      ? `f32(old_h[b * u.hidden + ${k}])`
      : first
        ? initial
          ? `f32(initial_h[state + ${k}])`
          : '0.0'
        : `f32(y[previous + ${k}])`;
  // The old state's contribution to gates; for those of `from`, another vector's.
  const products = (which: readonly number[], from: (k: string) => string) =>
    `${which.map((gate) => `var h_${gate} = 0.0;`).join(' ')}
  for (var k = 0u; k < u.hidden; k++) {
    let h = ${from('k')};
    ${which
      .map((gate) => `h_${gate} += h * f32(r[weights + (${gate}u * u.hidden + j) * u.hidden + k]);`)
      .join('\n    ')}
  }`;
  const none = first && !initial && !old;
  const zeros = (which: readonly number[]) => which.map((gate) => `let h_${gate} = 0.0;`).join(' ');
  const fromOld = (which: readonly number[]) => (none ? zeros(which) : products(which, oldState));
  const input = (gate: number) => `f32(xw[(time * u.batch + b) * ${gates}u * u.hidden + ${gate}u * u.hidden + j])`;
  const biasOf = (gate: number, recurrent: boolean) =>
    bias
      ? ` + f32(bias[u.direction * ${2 * gates}u * u.hidden + ${(recurrent ? gates : 0) + gate}u * u.hidden + j])`
      : '';
  const sum = (gate: number) => `${input(gate)} + h_${gate}${biasOf(gate, false)}${biasOf(gate, true)}`;
  const peep = (gate: number, c: string) =>
    peepholes ? ` + f32(peepholes[u.direction * 3u * u.hidden + ${gate}u * u.hidden + j]) * ${c}` : '';

  const bodies: { readonly [name in Cell]: () => string } = {
    rnn: () => `${fromOld(all)}
  let h_new = act_0(${sum(0)});`,
    lstm: () => `${fromOld(all)}
  let c_old = f32(cell[state + j]);
  let i_gate = act_0(${sum(0)}${peep(0, 'c_old')});
  let f_gate = ${coupled ? '1.0 - i_gate' : `act_0(${sum(2)}${peep(2, 'c_old')})`};
  let c_new = f_gate * c_old + i_gate * act_1(${sum(3)});
  let o_gate = act_0(${sum(1)}${peep(1, 'c_new')});
  let h_new = o_gate * act_2(c_new);
  cell[state + j] = ${store('c_new')};`,
    gru_reset: () => `${fromOld([1])}
  reset[b * u.hidden + j] = ${store(`act_0(${sum(1)}) * (${oldState('j')})`)};
  return;`,
    gru: () => {
      const candidate = linearFirst
        ? `${fromOld([0, 1, 2])}
  let r_gate = act_0(${sum(1)});
  let candidate = act_1(${input(2)}${biasOf(2, false)} + r_gate * (h_2${biasOf(2, true)}));`
        : `${fromOld([0])}
  ${products([2], (k) => `f32(reset[b * u.hidden + ${k}])`)}
  let candidate = act_1(${sum(2)});`;
      return `${candidate}
  let z_gate = act_0(${sum(0)});
  let h_new = (1.0 - z_gate) * candidate + z_gate * (${oldState('j')});`;
    },
  };
  // A sequence of no steps ends in zeros, as in onnxruntime.
  const empty =
    lengths && first
      ? ` last_h[state + j] = ${store('0.0')};${cell === 'lstm' ? ` cell[state + j] = ${store('0.0')};` : ''}`
      : '';
  const math = mathFunctions('bounded', ...functions.flatMap((each) => each.math));
  return `${laneAliases(1)}\n${math}\n${names.join('\n')}
${linearMain(`  let j = i % u.hidden;
  let b = i / u.hidden;
  let state = (u.direction * u.batch + b) * u.hidden;
  let weights = u.direction * ${gates}u * u.hidden * u.hidden;
  let length = ${lengths ? 'min(u32(lengths[b]), u.times)' : 'u.times'};
  // Times beyond a sequence's end are the last steps in either direction.
  let time = select(u.step, length - 1u - u.step, u.reverse == 1u && u.step < length);
  let here = ((time * u.directions + u.direction) * u.batch + b) * u.hidden;
  let previous = select(here - u.directions * u.batch * u.hidden, here + u.directions * u.batch * u.hidden,
    u.reverse == 1u);
  if (u.step >= length) { ${cell === 'gru_reset' ? '' : `y[here + j] = ${store('0.0')};${empty}`} return; }
  ${bodies[cell]()}
  ${
    cell === 'gru_reset'
      ? ''
      : `y[here + j] = ${store('h_new')};
  if (u.step + 1u == length) { last_h[state + j] = ${store('h_new')}; }`
  }`).replace(/\n {2}return;\n {2}\n/, '\n')}`;
}
