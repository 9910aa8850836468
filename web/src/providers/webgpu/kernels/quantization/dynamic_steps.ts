// Dynamic quantization: 255 steps from the smallest to the largest number of a tensor.
import type { Context, Dispatch, Shader, Spec, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import {
  type Division,
  division,
  divisionText,
  inLanes,
  laneAliases,
  linearMain,
  mathFunctions,
  partsOf,
  quotient,
  teamMain,
  teamSize,
  teamWorkgroups,
} from '../../wgsl';
import { repeated } from '../../wgsl/repeated';

interface RangeSpec extends Spec {
  readonly lanes: 1 | 4;
  readonly team: number;
}

// The range always includes zero; a NaN counts as zero.
const RANGES: Shader<RangeSpec> = {
  name: 'ranges',
  wgsl({ lanes, team }) {
    const over = (combine: string, name: string) =>
      lanes === 1 ? name : `${combine}(${combine}(${name}.x, ${name}.y), ${combine}(${name}.z, ${name}.w))`;
    return `${laneAliases(lanes)}
${mathFunctions('is_nan')}
${teamMain({
  team,
  neighbors: false,
  accumulators: ['low', 'high'].map((name) => ({ name, type: 'F', start: 'F(0.0)' })),
  prepare: `  let first = o * u.part_steps;
  let end = min(first + u.part_steps, u.steps);`,
  step: `    let value = select(x[r], F(0.0), is_nan(x[r]));
    low = min(low, value); high = max(high, value);`,
  merge: '      low = min(low, other_low); high = max(high, other_high);',
  finish: `    y[o] = vec2<f32>(${over('min', 'low')}, ${over('max', 'high')});`,
})}`;
  },
};

/** The members of a dispatch for `dynamic_steps()`. */
export type Ranges = Required<Pick<Dispatch, 'inputs' | 'uniforms' | 'f32'>>;

/** Parts of a tensor for the workgroups of a GPU: few enough that joining them costs little. */
const PARTS = 32;
/** Parts that are joined at a time, two in a vector: loads that are issued together cost one wait. */
const AT_ONCE = 16;

/** The smallest and the largest number of each part of x, float32 [parts, 2]: `dynamic_steps()` reads them. */
export function rangesOf(ctx: Context, x: Tensor): Ranges {
  const lanes = x.size % 4 === 0 ? 4 : 1;
  const steps = x.size / lanes;
  const wanted = ctx.device.software ? partsOf(1, steps, 1, ctx.device) : PARTS;
  const parts = Math.ceil(wanted / AT_ONCE) * AT_ONCE; // some may be empty
  const length = Math.ceil(steps / wanted);
  const team = teamSize(parts, length, ctx.device);
  const ranges = ctx.temp([parts, 2], DType.float32);
  ctx.dispatch({
    shader: RANGES,
    spec: { lanes, team },
    inputs: { x: inLanes(x, lanes) },
    outputs: { y: { tensor: ranges, vec: 2 } },
    uniforms: { count: parts, steps, part_steps: length },
    workgroups: teamWorkgroups(parts, team, ctx.device),
  });
  return {
    inputs: { ranges: inLanes(ranges, 4) },
    uniforms: { parts, levels: 255 },
    f32: ['levels'],
  };
}

/** A scale and a zero point, in terms of F. */
export const STEPS = 'struct Steps { scale: F, zero: F }';

/**
 * WGSL of `dynamic_steps()`, which joins the parts in `ranges` to Steps. onnxruntime's result for -inf / inf is the
 * largest zero point. Compilers turn a division by a constant into a multiplication, which rounds differently: hence
 * u.levels, 255.
 */
export function dynamicStepsText(spec: Division): string {
  return `${mathFunctions('is_infinite')}
${STEPS}
fn dynamic_steps() -> Steps {
  var range = vec2<f32>(0.0);
  for (var part = 0u; part < u.parts; part += ${AT_ONCE}u) {
    ${repeated(AT_ONCE / 2, (i) => `let two_${i} = ranges[part / 2u + ${i}u];`)}
    ${repeated(
      AT_ONCE / 2,
      (i) => `range = vec2<f32>(min(range.x, min(two_${i}.x, two_${i}.z)), max(range.y, max(two_${i}.y, two_${i}.w)));`,
    )}
  }
  let low = F(range.x);
  let step = select(${quotient(spec, 'F(range.y - range.x)', 'F(u.levels)')}, F(1.0), F(range.y) == low);
  let zero = clamp(round(${quotient(spec, '-low', 'step')}), F(0.0), F(255.0));
  return Steps(step, select(zero, F(255.0), is_infinite(low)));
}`;
}

const DYNAMIC_STEPS: Shader<Division> = {
  name: 'dynamic_steps',
  wgsl: (spec) => `${laneAliases(1)}
${divisionText(spec)}
${dynamicStepsText(spec)}
${linearMain(`  let steps = dynamic_steps();
  scale[0] = steps.scale;
  zero[0] = u32(steps.zero);`)}`,
};

/** Writes the scale, float32, and the zero point, uint8, for the quantization of x; one number each. */
export function dynamicSteps(ctx: Context, x: Tensor, scale: Tensor, zero: Tensor): void {
  const ranges = rangesOf(ctx, x);
  ctx.dispatch({
    shader: DYNAMIC_STEPS,
    spec: division(ctx.device),
    ...ranges,
    outputs: { scale, zero },
    uniforms: { count: 1, ...ranges.uniforms },
    workgroups: [1, 1, 1],
  });
}
