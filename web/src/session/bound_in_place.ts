// Outputs bound to the same buffers as feeds: if a node reads such a feed and makes such an output (a cache of keys,
// for example), its kernel may write only the new part. The pairs are part of a recording's key.
import type { DeviceSession } from '../device/session';
import { kernelIds } from './node_times';
import type { PlanInfo } from './plan';
import { isContainer, isOnGpu, named, type TensorOnGpu, type Value } from '../wire/values';

/**
 * By kernel, the pairs of output and input that share a buffer in this run, if the run uses the buffer for nothing
 * else.
 */
export function boundInPlace(
  plan: PlanInfo,
  gpuSession: DeviceSession,
  feeds: readonly Value[],
  bind: { readonly [name: string]: TensorOnGpu } = {},
): Map<number, (readonly [output: number, input: number])[]> {
  const found = new Map<number, (readonly [number, number])[]>();
  const bound = Object.values(bind).map(({ gpuId }) => gpuId);
  const fed = feeds.flatMap((feed) => (!isContainer(feed) && isOnGpu(feed) ? [feed.gpuId] : []));
  if (bound.length === 0 || fed.length === 0) return found;
  const once = (ids: readonly number[], id: number) => ids.indexOf(id) === ids.lastIndexOf(id);
  const kernels = kernelIds(gpuSession);
  for (const { node, input, output, feed, name } of plan.fedOutputs()) {
    const [value, place] = [feeds[feed], named(bind, name)];
    if (
      !place ||
      isContainer(value) ||
      !isOnGpu(value) ||
      value.gpuId !== place.gpuId ||
      !once(fed, value.gpuId) ||
      !once(bound, place.gpuId)
    )
      continue;
    if (value.dtype !== place.dtype || value.dims.join() !== place.dims.join()) continue;
    found.set(kernels[node], [...(found.get(kernels[node]) ?? []), [output, input]]);
  }
  return found;
}
