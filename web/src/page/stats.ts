// GetStats: memory and counters of a page or a session. gpu_bytes includes cached buffers.
import { providers } from 'virtual:providers';
import type { MicrokernelStats } from '../core/microkernels';
import { type Counters, countersOf } from '../device/counters';
import type { Runtime } from '../session/runtime';
import { GpuWeightStore } from '../session/weight_store';
import type { Session } from '../session/session';

/** In bytes. */
export interface MemoryUse {
  readonly weights: number;
  /** Part of it that other sessions share. */
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
  readonly buffer_caches?: object;
}

/** Memory that belongs to no session. */
export interface DeviceStats {
  readonly tensors: number;
  readonly tensor_bytes: number;
  readonly buffer_caches: object;
}

export interface PageStats {
  readonly counters: Counters;
  readonly heap_bytes: number;
  readonly wasm?: MicrokernelStats;
  readonly gpu_bytes: number;
  /** By device id, after its provider's name if that is not the build's first one with devices. */
  readonly devices: { readonly [id: string]: DeviceStats };
  readonly sessions: { readonly [id: string]: SessionStats };
  /** The JSEP functions that ever suspended the core. */
  readonly suspending_imports: readonly string[];
}

export function sessionStats(session: Session): SessionStats {
  return {
    recordings: session.recordings?.size ?? 0,
    weights_bytes: session.plan.weights.reduce((sum, { size }) => sum + size, 0),
    device_id: session.settings?.deviceId ?? 0,
    arena_bytes: session.gpuSession?.memory.arena.bytes ?? 0,
    memory: memoryOf(session),
    buffer_caches: session.gpuSession?.memory.cacheStats,
  };
}

/** Bytes, by provider. A run frees its memory in the heap at its end: its bytes there are the peak. */
function memoryOf({ weights, devices, heapUse }: Session): SessionMemory {
  const { heap, sharedInHeap } = weights.bytes;
  return {
    wasm: { weights: heap + heapUse.kept, shared: sharedInHeap, arena: heapUse.peak, peak: heapUse.peak },
    ...Object.fromEntries(
      devices.sessions.flatMap((session) => {
        if (!session) return [];
        const { provider, memory } = session;
        const { bytes, shared } = weights.on(provider);
        const { bytesOfWeights, bytes: arena, peak } = memory.arena;
        return [[provider.name, { weights: bytes + bytesOfWeights, shared, arena, peak }]];
      }),
    ),
  };
}

export async function pageStats(runtime: Runtime, sessions: ReadonlyMap<number, Session>): Promise<PageStats> {
  const open = await runtime.openDevices();
  let gpu_bytes = 0;
  for (const { device } of open) gpu_bytes += device.bytes + GpuWeightStore.of(device).bytes;
  for (const { devices } of sessions.values())
    for (const session of devices.sessions) gpu_bytes += session?.memory.bytes ?? 0;
  const loaded = runtime.loadedCore;
  const [first] = Object.keys(providers);
  return {
    counters: countersOf(open.map(({ device }) => device.counters)),
    heap_bytes: loaded?.core.heap.byteLength ?? 0,
    wasm: loaded?.core.microkernels.stats,
    gpu_bytes,
    devices: Object.fromEntries(
      open.map(({ id, device: { name, buffers, cacheStats = {} } }) => [
        name === first ? id : `${name} ${id}`,
        { tensors: buffers.count, tensor_bytes: buffers.bytes, buffer_caches: cacheStats },
      ]),
    ),
    sessions: Object.fromEntries([...sessions].map(([id, session]) => [id, sessionStats(session)])),
    suspending_imports: [...(loaded?.core.suspendedIn ?? [])],
  };
}
