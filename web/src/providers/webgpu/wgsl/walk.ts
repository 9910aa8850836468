// WGSL of a walk over several tensors: from one linear index to each tensor's element.
import type { Uniforms } from '../../../contract/kernel';
import type { Walk } from '../../../contract/shape';

/**
 * Uniforms of a walk: `PREFIXdims_k`, and `NAME_k` for each tensor. Negative strides wrap around in u32, as intended.
 */
export function walkUniforms({ dims, strides }: Walk, names: readonly string[], prefix = ''): Uniforms {
  const uniforms: Record<string, readonly number[]> = { [`${prefix}dims`]: dims };
  names.forEach((name, k) => (uniforms[name] = strides[k]));
  return uniforms;
}

/**
 * Statements that declare `at_NAME: u32` for each name: the sum of index times stride over `rank` axes, from the
 * linear index `from`, beginning at `start[name]` (WGSL, 0 by default).
 */
export function walkIndices(
  rank: number,
  names: readonly string[],
  {
    from = 'i',
    prefix = '',
    start = {},
  }: { from?: string; prefix?: string; start?: Readonly<Record<string, string>> } = {},
): string {
  const rest = `${prefix}rest`;
  const lines = names.map((name) => `  var at_${name}: u32 = ${start[name] ?? '0u'};`);
  if (rank > 1) lines.push(`  var ${rest}: u32 = ${from};`);
  for (let axis = rank - 1; axis >= 0; axis--) {
    const index = `${prefix}index_${axis}`;
    if (axis > 0) {
      lines.push(
        `  let ${index} = ${rest} % u.${prefix}dims_${axis};`,
        `  ${rest} = ${rest} / u.${prefix}dims_${axis};`,
      );
    } else {
      lines.push(`  let ${index} = ${rank > 1 ? rest : from};`);
    }
    for (const name of names) lines.push(`  at_${name} += ${index} * u.${name}_${axis};`);
  }
  return lines.join('\n');
}
