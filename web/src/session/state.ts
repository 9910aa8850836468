// What there is of a session from its creation to its release: what its runs work on.
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
  /** What its nodes on the CPU run with. */
  readonly wasm: CpuMeans;
  /** What it was made of, on the worker's clock. */
  readonly timeline: readonly Span[];
}

export class SessionState {
  readonly recordings: RecordingCache | undefined;
  readonly growingCaches: GrowingCaches | undefined;
  /** What a `graphId` was captured with: the key of its recording, and that in words. */
  readonly captures = new Map<number, { readonly key: string; readonly inputs: string }>();
  /**
   * The most bytes that a run's tensors needed in the heap at one time, and what kernels keep there of what they made
   * of weights.
   */
  readonly heapUse = { peak: 0, kept: 0 };

  /** Whoever has something of the session's memory gives it back before. */
  readonly beforeRelease: (() => Promise<void>)[] = [];

  protected constructor(
    readonly plan: PlanInfo,
    readonly info: SessionInfo,
    readonly runtime: Runtime,
    readonly loaded: LoadedCore,
    readonly handle: number,
    readonly devices: SessionDevices,
    readonly weights: SessionWeights,
    /** Of its provider with devices, whether it is on one or not; undefined: this build has none. */
    readonly settings: DeviceSettings | undefined,
    /** Whether its runs are marked in the browser's performance timeline. */
    readonly traced = false,
  ) {
    const { gpuSession } = this;
    this.recordings = gpuSession && new RecordingCache(gpuSession.memory.arena);
    this.growingCaches = gpuSession && !settings?.enableGraphCapture ? GrowingCaches.of(plan, gpuSession) : undefined;
  }

  /** That on the first of its devices. */
  get gpuSession(): DeviceSession | undefined {
    return this.devices.first;
  }

  get provider(): DeviceProvider | undefined {
    return this.gpuSession?.provider;
  }

  /** Of a run that is over: what tensors had in the heap before it, have now, and had at most. */
  noteHeap(before: number, { now, peak }: { readonly now: number; readonly peak: number }): void {
    const kept = now - before;
    this.heapUse.peak = Math.max(this.heapUse.peak, peak - before - kept);
    this.heapUse.kept += kept;
  }
}
