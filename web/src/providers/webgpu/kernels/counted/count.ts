// Operators whose result's shape depends on data are two nodes on the GPU: the first one counts, the second one reads
// the count as a host input, for which the core waits (py_ort/compiler/passes/placed/counts.py makes the first).
import { type Context, KernelError } from '../../../../contract/kernel';

/** The shape of a count. */
export const COUNT: readonly number[] = [1];

/** The result of the counting node. */
export function countOf(ctx: Context, index: number): number {
  const found = ctx.data(index);
  if (!found)
    throw new KernelError(
      'needs the results of its counting node: a single kernel cannot know how much there will be',
      true,
    );
  return found[0];
}
