// Exclusive prefix sums without barriers: sums of 64 numbers, sums of the sums, and so on; then back down.
import type { Context, Shader, Spec, Tensor } from '../../../../contract/kernel';
import { DType } from '../../../../schema';
import { linearMain, linearWorkgroups } from '../../wgsl';

/** Numbers per thread. */
export const FAN = 64;

const SUMS: Shader<Spec> = {
  name: 'counted__sums',
  wgsl: () =>
    linearMain(`  var sum = 0;
  let end = min((i + 1u) * ${FAN}u, u.n);
  for (var k = i * ${FAN}u; k < end; k++) { sum += x[k]; }
  y[i] = sum;`),
};

const STARTS: Shader<{ readonly first: boolean }> = {
  name: 'counted__starts',
  wgsl: ({ first }) =>
    linearMain(`  var sum = ${first ? '0' : 'before[i]'};
  let end = min((i + 1u) * ${FAN}u, u.n);
  for (var k = i * ${FAN}u; k < end; k++) {
    y[k] = sum;
    sum += x[k];
  }`),
};

/** starts[k] = the sum of all values before k; total[0] = the sum of all. All are int32. */
export function prefixSums(ctx: Context, values: Tensor, starts: Tensor, total: Tensor): void {
  const n = values.size;
  const groups = Math.max(1, Math.ceil(n / FAN));
  const sums = groups === 1 ? total : ctx.temp([groups], DType.int32);
  const all = { uniforms: { count: groups, n }, workgroups: linearWorkgroups(groups, ctx.device) };
  ctx.dispatch({ shader: SUMS, spec: {}, inputs: { x: values }, outputs: { y: sums }, ...all });
  const before = groups === 1 ? undefined : ctx.temp([groups], DType.int32);
  if (before) prefixSums(ctx, sums, before, total);
  ctx.dispatch({
    shader: STARTS,
    spec: { first: !before },
    inputs: { x: values, ...(before ? { before } : {}) },
    outputs: { y: starts },
    ...all,
  });
}
