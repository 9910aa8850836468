// GetStats: what a page or a session holds and has done. gpu_bytes includes what waits in caches.
import { newCounters } from '../gpu/counters';
import type { Runtime } from '../session/runtime';
import { GpuWeightStore } from '../session/weight_store';
import type { Session } from '../session/session';

export function sessionStats(session: Session) {
  return {
    recordings: session.recordings?.size ?? 0,
    weights_bytes: session.plan.weights.reduce((sum, { size }) => sum + size, 0),
    device_id: session.webgpu.deviceId,
    arena_bytes: session.gpuSession?.memory.arena.bytes ?? 0,
    memory: memoryOf(session),
    buffer_caches: session.gpuSession?.memory.caches.stats,
  };
}

/** Bytes, by provider. What a run needs in the heap is given back after it: its room there is its peak. */
function memoryOf({ weights, gpuSession, heapUse }: Session) {
  const { gpu, heap, sharedOnGpu, sharedInHeap } = weights.bytes;
  const arena = gpuSession?.memory.arena;
  return {
    wasm: { weights: heap + heapUse.kept, shared: sharedInHeap, arena: heapUse.peak, peak: heapUse.peak },
    ...(arena && {
      webgpu: { weights: gpu + arena.bytesOfWeights, shared: sharedOnGpu, arena: arena.bytes, peak: arena.peak },
    }),
  };
}

export async function pageStats(runtime: Runtime, sessions: ReadonlyMap<number, Session>) {
  const contexts = await runtime.contexts.all();
  const counters = newCounters();
  let gpu_bytes = 0;
  for (const provider of contexts.values()) {
    const { gpu, buffers, readback, cachedBytes } = provider;
    for (const name of Object.keys(counters) as (keyof typeof counters)[]) counters[name] += gpu.counters[name];
    gpu_bytes += buffers.bytes + readback.bytes + cachedBytes + GpuWeightStore.of(provider).bytes;
  }
  for (const session of sessions.values()) gpu_bytes += session.gpuSession?.memory.bytes ?? 0;
  const loaded = runtime.loadedCore;
  return {
    counters,
    heap_bytes: loaded?.core.heap.byteLength ?? 0,
    wasm: loaded?.core.microkernels.stats,
    gpu_bytes,
    /** What belongs to no session, by device id. */
    devices: Object.fromEntries(
      [...contexts].map(([id, { buffers, caches }]) => [
        id,
        { tensors: buffers.count, tensor_bytes: buffers.bytes, buffer_caches: caches.stats },
      ]),
    ),
    sessions: Object.fromEntries([...sessions].map(([id, session]) => [id, sessionStats(session)])),
    /** The JSEP functions in which the core was ever suspended. */
    suspending_imports: [...(loaded?.core.suspendedIn ?? [])],
  };
}
