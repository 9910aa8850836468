// Emitters from formulas, and common queries of a call.
import type { Requirement } from '../../../../contract/kernel';
import { normalizeAxis } from '../../../../contract/shape';
import type { Formula } from '../../formula';
import type { MlOperand } from '../../ml';
import type { Call, Emit } from '../../operator';

type Parts = (f: Formula, x: readonly MlOperand[], call: Call) => MlOperand | readonly MlOperand[];

/** Emits an operator's parts. */
export const formula =
  (parts: Parts) =>
  (call: Call): Emit =>
  (f, x) =>
    parts(f, x, call);

/** For inputs with a limited number of axes. */
export const axesUpTo = (max: number, ...inputs: readonly number[]): Requirement[] =>
  inputs.map((input) => ({ rank: { input, max }, otherwise: `more than ${max} axes` }));

export const axisOf = ({ attributes, inputs }: Call, otherwise: number): number =>
  normalizeAxis(attributes.integer('axis', otherwise), inputs[0]!.dims.length);

export const range = (count: number, first = 0, step = 1): number[] =>
  Array.from({ length: count }, (_, i) => first + i * step);
