// GetStats: what a page or a session holds and has done. gpu_bytes includes what waits in caches.
import type { MicrokernelStats } from '../core/microkernels';
import type { BufferCacheStats } from '../providers/webgpu/buffer_cache';
import type { GpuSession } from '../providers/webgpu/gpu_session';
import { type Counters, newCounters } from '../device/counters';
import type { Runtime } from '../session/runtime';
import { GpuWeightStore } from '../session/weight_store';
import type { Session } from '../session/session';

/** In bytes. */
export interface MemoryUse {
  readonly weights: number;
  /** Of these, what other sessions hold as well. */
  readonly shared: number;
  readonly arena: number;
  readonly peak: number;
}

export interface SessionMemory {
  readonly wasm: MemoryUse;
  readonly webgpu?: MemoryUse;
}

export interface SessionStats {
  readonly recordings: number;
  readonly weights_bytes: number;
  readonly device_id: number;
  readonly arena_bytes: number;
  readonly memory: SessionMemory;
  readonly buffer_caches?: BufferCacheStats;
}

/** What belongs to no session. */
export interface DeviceStats {
  readonly tensors: number;
  readonly tensor_bytes: number;
  readonly buffer_caches: BufferCacheStats;
}

export interface PageStats {
  readonly counters: Counters;
  readonly heap_bytes: number;
  readonly wasm?: MicrokernelStats;
  readonly gpu_bytes: number;
  /** By device id. */
  readonly devices: { readonly [id: string]: DeviceStats };
  readonly sessions: { readonly [id: string]: SessionStats };
  /** The JSEP functions in which the core was ever suspended. */
  readonly suspending_imports: readonly string[];
}

export function sessionStats(session: Session): SessionStats {
  return {
    recordings: session.recordings?.size ?? 0,
    weights_bytes: session.plan.weights.reduce((sum, { size }) => sum + size, 0),
    device_id: session.webgpu.deviceId,
    arena_bytes: session.gpuSession?.memory.arena.bytes ?? 0,
    memory: memoryOf(session),
    buffer_caches: (session.gpuSession as GpuSession | undefined)?.memory.caches.stats,
  };
}

/** Bytes, by provider. What a run needs in the heap is given back after it: its room there is its peak. */
function memoryOf({ weights, gpuSession, heapUse }: Session): SessionMemory {
  const { gpu, heap, sharedOnGpu, sharedInHeap } = weights.bytes;
  const arena = gpuSession?.memory.arena;
  return {
    wasm: { weights: heap + heapUse.kept, shared: sharedInHeap, arena: heapUse.peak, peak: heapUse.peak },
    ...(arena && {
      webgpu: { weights: gpu + arena.bytesOfWeights, shared: sharedOnGpu, arena: arena.bytes, peak: arena.peak },
    }),
  };
}

export async function pageStats(runtime: Runtime, sessions: ReadonlyMap<number, Session>): Promise<PageStats> {
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
    devices: Object.fromEntries(
      [...contexts].map(([id, { buffers, caches }]) => [
        id,
        { tensors: buffers.count, tensor_bytes: buffers.bytes, buffer_caches: caches.stats },
      ]),
    ),
    sessions: Object.fromEntries([...sessions].map(([id, session]) => [id, sessionStats(session)])),
    suspending_imports: [...(loaded?.core.suspendedIn ?? [])],
  };
}
