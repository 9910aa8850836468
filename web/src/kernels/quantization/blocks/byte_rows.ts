// Rows of floats as bytes less 128, for products by dot4I8Packed: in given steps, or in those of
// DynamicQuantizeLinear.
import type { Attributes } from '../../../contract/attributes';
import type { Context, Shader, Tensor } from '../../../contract/kernel';
import { DType } from '../../../schema';
import {
  type Division,
  division,
  divisionText,
  inLanes,
  laneAliases,
  quotient,
  teamMain,
  teamSize,
  teamWorkgroups,
} from '../../../wgsl';
import { dynamicStepsText, type Ranges, rangesOf, STEPS } from '../dynamic_steps';

/** A scale and a zero point from 0 to 255, or those that the tensor's range makes. */
export type ByteSteps = 'dynamic' | { readonly scale: number; readonly zero: number };

export function readSteps(a: Attributes): ByteSteps | undefined {
  if (a.integer('a_dynamic', 0) !== 0) return 'dynamic';
  const scale = a.number('a_scale', 0);
  return scale === 0 ? undefined : { scale, zero: a.number('a_zero', 0) };
}

interface PackSpec extends Division {
  readonly dynamic: boolean;
  readonly team: number;
}

const PACK: Shader<PackSpec> = {
  name: 'byte_rows',
  wgsl: ({ team, dynamic, ...spec }) => `${laneAliases(4)}
${divisionText(spec)}
${dynamic ? dynamicStepsText(spec) : STEPS}
${teamMain({
  team,
  neighbors: false,
  accumulators: [{ name: 'sum', type: 'i32', start: '0' }],
  prepare: `  ${dynamic ? 'let steps = dynamic_steps();' : 'let steps = Steps(F(u.scale), F(u.zero));'}
  let scale = steps.scale;
  let zero = steps.zero;
  let first = 0u;
  let end = u.words;`,
  step: `    let at = o * u.words + r;
    let byte = clamp(round(${quotient(spec, 'F(a[at])', 'scale')}) + zero, F(0.0), F(255.0));
    let word = pack4xI8(I(byte) - 128);
    words[at] = word;
    sum += dot4I8Packed(word, 0x01010101u);`,
  merge: '      sum += other_sum;',
  finish: '    rows[o] = I(sum, i32(zero.x) - 128, bitcast<i32>(scale.x), 0);',
})}`,
};

export interface ByteRows {
  /** Bytes, four to a word: uint32 [m, k / 4]. */
  readonly words: Tensor;
  /** Of each row: the sum of its bytes, the byte of 0, and the bits of its scale. int32 [m, 4]. */
  readonly rows: Tensor;
}

/** a as bytes; its last axis, k long, is of whole words. */
export function byteRows(ctx: Context, a: Tensor, k: number, steps: ByteSteps): ByteRows {
  const m = a.size / k;
  const words = ctx.temp([m, k / 4], DType.uint32);
  const rows = ctx.temp([m, 4], DType.int32);
  const given: Ranges =
    steps === 'dynamic' ? rangesOf(ctx, a) : { inputs: {}, uniforms: { ...steps }, f32: ['scale', 'zero'] };
  const team = teamSize(m, k / 4, ctx.device);
  ctx.dispatch({
    shader: PACK,
    spec: { dynamic: steps === 'dynamic', team, ...division(ctx.device) },
    inputs: { a: inLanes(a, 4), ...given.inputs },
    outputs: { words, rows: inLanes(rows, 4) },
    uniforms: { count: m, words: k / 4, ...given.uniforms },
    f32: given.f32,
    workgroups: teamWorkgroups(m, team, ctx.device),
  });
  return { words, rows };
}
