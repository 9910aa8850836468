// GPU tensors passed to a run, as feeds or as places for outputs: they must be on the session's device, alive and large
// enough.
import type { DType } from '../schema';
import { invalid } from '../errors';
import { noBuffer } from '../device/buffers';
import { storageBytes } from '../device/memory_plan';
import type { DeviceProvider } from '../device/provider';
import { elementCount, hasGpuForm, typeName } from '../contract/elements';
import type { SessionState } from './state';
import { isContainer, isOnGpu, type TensorOnCpu, type TensorOnGpu, type Value } from '../wire/values';

/** The feeds, with GPU tensors in a form for this session: on its device, or on the CPU if it has none. */
export async function placeFeeds(session: SessionState, feeds: readonly Value[]): Promise<readonly Value[]> {
  // If no node is on a device, the core knows no device.
  const there = session.plan.providers.length > 1 ? session.provider : undefined;
  const placed = feeds.map((feed, i) => {
    if (isContainer(feed) || !isOnGpu(feed) || (there && fits(there, feed))) return feed;
    return fetchOrFail(session, `input "${session.plan.inputs[i].name}"`, feed);
  });
  return placed.some((feed) => feed instanceof Promise) ? Promise.all(placed) : (placed as Value[]);
}

/**
 * True if the tensor is on this device. Its size was checked when it was made, and is checked again if it has changed.
 */
function fits(provider: DeviceProvider | undefined, { gpuId, dtype, dims }: TensorOnGpu): boolean {
  if (!provider?.buffers.has(gpuId)) return false;
  return hasGpuForm(dtype) && provider.buffers.room(gpuId) >= bytesOnGpu(provider, dtype, dims);
}

function bytesOnGpu({ elements }: DeviceProvider, dtype: DType, dims: readonly number[]): number {
  return storageBytes(elementCount(dims) * elements.size(dtype));
}

/**
 * Fetches a tensor of no device, or of another provider's, into the heap; a `place` for an output cannot be fetched.
 */
async function fetchOrFail(
  session: SessionState,
  what: string,
  tensor: TensorOnGpu,
  place = false,
): Promise<TensorOnCpu> {
  const { gpuId, dtype, dims } = tensor;
  const owner = await session.runtime.ownerOf(gpuId);
  if (!owner) throw noBuffer(gpuId, what);
  const { device: provider } = owner;
  const own = session.provider;
  if (own && provider !== own && (place || provider.name === own.name)) {
    throw invalid(
      `${what} is on device ${owner.id} of ${provider.name}, and this session on device ` +
        `${session.settings?.deviceId} of ${own.name}: take it to the CPU first, or give both the same deviceId`,
    );
  }
  if (!fits(provider, tensor)) {
    const room = provider.buffers.room(gpuId);
    throw invalid(
      `${what}: ${typeName(dtype)}[${dims}] needs ${bytesOnGpu(provider, dtype, dims)} bytes, ` +
        `and GPU buffer ${gpuId} has ${room}`,
    );
  }
  const bytes = await provider.read(gpuId, elementCount(dims) * provider.elements.size(dtype));
  return { dtype, dims, data: provider.elements.narrow(dtype, bytes) };
}

/**
 * Throws unless these places can receive outputs of this session; their sizes are checked when the outputs are known.
 */
export async function checkPlaces(
  session: SessionState,
  places: { readonly [name: string]: TensorOnGpu },
): Promise<void> {
  for (const [name, place] of Object.entries(places)) {
    if (!session.provider)
      throw invalid(`output "${name}" is bound to a tensor on a device, and no node of this session runs on one`);
    if (!fits(session.provider, place)) await fetchOrFail(session, `the place bound to output "${name}"`, place, true);
  }
}

/** Throws unless an output matches the place bound to it. */
export function checkOutputFits(name: string, place: TensorOnGpu, dtype: DType, dims: readonly number[]): void {
  if (place.dtype === dtype && place.dims.length === dims.length && place.dims.every((dim, i) => dim === dims[i]))
    return;
  const [made, bound] = [`${typeName(dtype)}[${dims}]`, `${typeName(place.dtype)}[${place.dims}]`];
  throw invalid(`output "${name}" is ${made}; the value bound to it is ${bound}`);
}
