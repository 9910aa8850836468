// Rows of floats as bytes minus 128, for products by dot4I8Packed: in given steps, or in those of
// DynamicQuantizeLinear.
import type { Attributes } from '../../../../../contract/attributes';
import type { Context, Shader, Tensor } from '../../../../../contract/kernel';
import { DType } from '../../../../../schema';
import {
  type Division,
  division,
  divisionText,
  inLanes,
  laneAliases,
  linearMain,
  quotient,
  teamMain,
  teamSize,
  teamWorkgroups,
} from '../../../wgsl';
import type { Columns } from '../../shared/columns';
import { dynamicStepsText, type Ranges, rangesOf, STEPS } from '../dynamic_steps';
import { Dialect } from '../../../../../schema/dialect';

/** A scale and a zero point from 0 to 255, or those computed from the tensor's range. */
export type ByteSteps = 'dynamic' | { readonly scale: number; readonly zero: number };

export function readSteps(a: Attributes): ByteSteps | undefined {
  if (a.integer(Dialect.A_DYNAMIC, 0) !== 0) return 'dynamic';
  const scale = a.number(Dialect.A_SCALE, 0);
  return scale === 0 ? undefined : { scale, zero: a.number(Dialect.A_ZERO, 0) };
}

interface PackSpec extends Division {
  readonly dynamic: boolean;
  readonly summed: boolean;
  readonly team: number;
}

export interface ByteRows {
  /** Bytes, four to a word: uint32 [m, k / 4]. */
  readonly words: Tensor;
  /** As in ByteFactors. */
  readonly rows: Tensor;
}

/** A thread has a word; if rows are summed up, a team has a row. */
const PACK: Shader<PackSpec> = {
  name: 'byte_rows',
  wgsl({ team, dynamic, summed, ...spec }) {
    const steps = dynamic ? 'dynamic_steps()' : 'Steps(F(u.scale), F(u.zero))';
    const functions = `${laneAliases(4)}
${divisionText(spec)}
${dynamic ? dynamicStepsText(spec) : STEPS}
fn packed(x: F, steps: Steps) -> u32 {
  let byte = clamp(round(${quotient(spec, 'x', 'steps.scale')}) + steps.zero, F(0.0), F(255.0));
  return pack4xI8(I(byte) - 128);
}`;
    const row = (sum: string) => `I(${sum}, i32(steps.zero.x) - 128, bitcast<i32>(steps.scale.x), 0)`;
    if (!summed)
      return `${functions}
${linearMain(`  let steps = ${steps};
  words[i] = packed(F(a[i / u.words * u.pitch + u.first + i % u.words]), steps);
  if (i == 0u) { rows[0] = ${row('0')}; }`)}`;
    return `${functions}
${teamMain({
  team,
  neighbors: false,
  accumulators: [{ name: 'sum', type: 'i32', start: '0' }],
  prepare: `  let steps = ${steps};
  let first = 0u;
  let end = u.words;`,
  step: `    let word = packed(F(a[o * u.pitch + u.first + r]), steps);
    words[o * u.words + r] = word;
    sum += dot4I8Packed(word, 0x01010101u);`,
  merge: '      sum += other_sum;',
  finish: `    rows[o] = ${row('sum')};`,
})}`;
  },
};

/** Columns of a, with all sizes multiples of 4, as bytes. `summed`: with the sum of each row. */
export function byteRows(
  ctx: Context,
  a: Tensor,
  { first, count: k, pitch }: Columns,
  steps: ByteSteps,
  summed: boolean,
): ByteRows {
  const m = a.size / pitch;
  const words = ctx.temp([m, k / 4], DType.uint32);
  const rows = ctx.temp([summed ? m : 1, 4], DType.int32);
  const given: Ranges =
    steps === 'dynamic' ? rangesOf(ctx, a) : { inputs: {}, uniforms: { ...steps }, f32: ['scale', 'zero'] };
  const team = summed ? teamSize(m, k / 4, ctx.device) : 1;
  const count = summed ? m : words.size;
  ctx.dispatch({
    shader: PACK,
    spec: { dynamic: steps === 'dynamic', summed, team, ...division(ctx.device) },
    inputs: { a: inLanes(a, 4), ...given.inputs },
    outputs: { words, rows: inLanes(rows, 4) },
    uniforms: { count, words: k / 4, pitch: pitch / 4, first: first / 4, ...given.uniforms },
    f32: given.f32,
    workgroups: teamWorkgroups(count, team, ctx.device),
  });
  return { words, rows };
}
