// A session's state from its creation to its release, used by its runs.
import type { CpuMeans } from '../core/microkernels';
import type { Counters } from '../device/counters';
import type { DeviceSettings } from '../device/module';
import type { DeviceProvider } from '../device/provider';
import type { DeviceSession } from '../device/session';
import type { Span } from '../timeline';
import type { SessionDevices } from './devices';
import { GrowingCaches } from './growing_caches';
import type { PlanInfo } from './plan';
import { RecordingCache } from './recordings';
import type { LoadedCore, Runtime } from './runtime';
import type { SessionWeights } from './weights';

export interface SessionInfo {
  readonly create_ms: number;
  readonly weights_ms: number;
  readonly compile_ms: number;
  readonly counters: Counters;
  /** Threads and instructions of its nodes on the CPU. */
  readonly wasm: CpuMeans;
  /** The steps of its creation, on the worker's clock. */
  readonly timeline: readonly Span[];
}

export class SessionState {
  readonly recordings: RecordingCache | undefined;
  readonly growingCaches: GrowingCaches | undefined;
  /** By `graphId`, the key of the captured recording, and its inputs in words. */
  readonly captures = new Map<number, { readonly key: string; readonly inputs: string }>();
  /**
   * The most bytes that a run's tensors needed in the heap at one time, and the bytes that kernels keep there, derived
   * from weights.
   */
  readonly heapUse = { peak: 0, kept: 0 };

  /** Called before the release, to return parts of the session's memory. */
  readonly beforeRelease: (() => Promise<void>)[] = [];

  protected constructor(
    readonly plan: PlanInfo,
    readonly info: SessionInfo,
    readonly runtime: Runtime,
    readonly loaded: LoadedCore,
    readonly handle: number,
    readonly devices: SessionDevices,
    readonly weights: SessionWeights,
    /** The settings of its provider with devices, even if no node is on one; undefined: this build has none. */
    readonly settings: DeviceSettings | undefined,
    /** True if its runs are marked in the browser's performance timeline. */
    readonly traced = false,
  ) {
    const { gpuSession } = this;
    this.recordings = gpuSession && new RecordingCache(gpuSession.memory.arena);
    this.growingCaches = gpuSession && !settings?.enableGraphCapture ? GrowingCaches.of(plan, gpuSession) : undefined;
  }

  /** The session on the first of its devices. */
  get gpuSession(): DeviceSession | undefined {
    return this.devices.first;
  }

  get provider(): DeviceProvider | undefined {
    return this.gpuSession?.provider;
  }

  /** After a run: the bytes of tensors in the heap before it, now, and at the peak. */
  noteHeap(before: number, { now, peak }: { readonly now: number; readonly peak: number }): void {
    const kept = now - before;
    this.heapUse.peak = Math.max(this.heapUse.peak, peak - before - kept);
    this.heapUse.kept += kept;
  }
}
