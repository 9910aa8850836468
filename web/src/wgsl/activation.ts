// Activations that end another operator (Conv, Gemm, MatMul): the attributes `activation`, `activation_params`,
// `activation_offset` and `residual_last`, and their WGSL.
import { KernelError, type Uniforms } from '../contract/kernel';
import type { Attributes } from '../contract/attributes';
import { SCALAR_FUNCTIONS } from '../schema/scalar_functions';
import { type Lanes, laneType } from './lanes';
import { type MathName, mathFunctions } from './math';
import { withParameters } from './scalar_functions';

/** A function of one element. Its numbers are uniforms, so that one shader serves every LeakyRelu. */
export interface Activation {
  readonly kind: ActivationKind;
  readonly params: readonly number[];
}

/**
 * That of a scalar function, or `piecewise`. With `+`, the last number is added to the result; with `&`, the residual
 * is, instead of to the value (see activated).
 */
export type ActivationKind = string;

export function makeActivation(name: string, given: readonly number[] = []): Activation | undefined {
  if (name === '' || name === 'Identity') return undefined;
  const found = SCALAR_FUNCTIONS.find((row) => row.name === name && row.ends);
  if (!found) throw new KernelError(`no fused activation is called ${name}`, true);
  return { kind: found.kind, params: Object.values(found.parameters).map((value, i) => given[i] ?? value) };
}

export function readActivation(attributes: Attributes): Activation | undefined {
  const made = makeActivation(attributes.text('activation', ''), attributes.numbers('activation_params'));
  const offset = attributes.number('activation_offset', 0);
  if (!made) return made;
  if (offset !== 0) return { kind: `${made.kind}+`, params: [...made.params, offset] };
  return attributes.integer('residual_last', 0) ? { kind: `${made.kind}&`, params: made.params } : made;
}

/**
 * All that are made of a product and a clamp, by uniforms: scale, shift and bounds of the clamp; 1: times x, -1: x
 * alone. What is within the bounds stays as it is, also -0, which a shift of -0 leaves alone.
 */
const PIECEWISE: { readonly [kind: string]: ((params: readonly number[]) => readonly number[]) | undefined } = {
  none: () => [1, -0, 0, 0, -1],
  relu: () => [1, -0, 0, Infinity, 0],
  clip: ([low, high]) => [1, -0, low, high, 0],
  hard_sigmoid: ([alpha, beta]) => [alpha, beta, 0, 1, 0],
  hard_swish: () => [1 / 6, 0.5, 0, 1, 1],
};
const PIECEWISE_TEXT = `fn piecewise(x: F) -> F {
  let line = x * u.activation_0 + F(u.activation_1);
  let inside = clamp(line, F(u.activation_2), F(u.activation_3));
  let kept = select(inside, line, inside == line);
  return or_nan(select(select(F(1.0), x, u.activation_4 > 0.5) * kept, x, u.activation_4 < -0.5), x);
}
`;

/**
 * The activation as one that shares its shader with others and with none at all, where there is such a form: fewer
 * shaders to compile.
 */
export function piecewise(activation: Activation | undefined): Activation | undefined {
  const { kind = 'none', params = [] } = activation ?? {};
  const [, plain, suffix] = /^(.*?)([+&]?)$/.exec(kind)!;
  const made = PIECEWISE[plain]?.(params);
  if (!made) return activation;
  return {
    kind: `piecewise${suffix as '' | '+' | '&'}`,
    params: suffix === '+' ? [...made, params[params.length - 1]] : made,
  };
}

/** WGSL of `fn activate(x: F) -> F` for `lanes` lanes; the identity where there is no activation. */
export function activationText(kind: ActivationKind | undefined, lanes: Lanes): string {
  const [, plain, suffix] = /^(.*?)([+&]?)$/.exec(kind ?? '')!;
  const { text, math, functions, numbers } = bodyOf(plain);
  // The offset follows the function's own numbers.
  const offset = suffix === '+' ? ` + u.activation_${numbers}` : '';
  const written = `${mathFunctions(...math)}\n${functions}fn activate(x: F) -> F { return ${text}${offset}; }\n`;
  const types = { F: 'f32', I: 'i32', U: 'u32', B: 'bool' } as const;
  return written.replace(/\b[FIUB]\b/g, (name) => laneType(types[name as keyof typeof types], lanes));
}

interface Body {
  readonly text: string;
  readonly math: readonly MathName[];
  readonly functions: string;
  /** How many it takes. */
  readonly numbers: number;
}

function bodyOf(kind: string): Body {
  if (kind === '') return { text: 'x', math: [], functions: '', numbers: 0 };
  if (kind === 'piecewise') return { text: 'piecewise(x)', math: ['or_nan'], functions: PIECEWISE_TEXT, numbers: 5 };
  const found = SCALAR_FUNCTIONS.find((row) => row.kind === kind)!;
  const text = withParameters(found, (_, i) => `u.activation_${i}`);
  return { text, math: found.math, functions: '', numbers: Object.keys(found.parameters).length };
}

/** WGSL of the activation of a sum to which a residual may belong. */
export function activated(kind: ActivationKind | undefined, sum: string, residual: string | undefined): string {
  if (!residual) return `activate(${sum})`;
  return kind?.endsWith('&') ? `activate(${sum}) + ${residual}` : `activate(${sum} + ${residual})`;
}

/** The uniforms that `activationText` reads; all of them are f32. */
export function activationUniforms(activation: Activation | undefined): Uniforms {
  return activation && activation.params.length > 0 ? { activation: activation.params } : {};
}

/** Names for Dispatch.f32: packUniforms takes a field by its name without the index. */
export const ACTIVATION_F32 = ['activation'];
