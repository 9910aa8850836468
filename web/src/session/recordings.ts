// The recordings of a session, by input shapes; the least recently used are dropped first.
import type { Arena } from '../device/arena';
import { Recording } from '../device/recording';
import type { PlanInput } from './plan';
import { isContainer, isOnGpu, type Value } from '../wire/values';

const KEPT = 16;

export class RecordingCache {
  private readonly recordings = new Map<string, Recording>();
  /** False once borrowed recordings, made with other shapes on the CPU, have turned out useless. */
  private lending = true;

  constructor(private readonly arena: Arena) {}

  /** GPU tensors are bound directly, so their buffers are part of the key. */
  static key(feeds: readonly Value[]): string {
    return feeds
      .map((feed): string =>
        isContainer(feed)
          ? `${feed.kind}(${RecordingCache.key(feed.items)})`
          : `${feed.dtype}[${feed.dims}]${isOnGpu(feed) ? `@${feed.gpuId}` : ''}`,
      )
      .join(' ');
  }

  /** The part of the key that describes tensors for the GPU. */
  static gpuKey(feeds: readonly Value[], inputs: readonly PlanInput[]): string {
    return RecordingCache.key(feeds.filter((feed, i) => inputs[i].onGpu || isContainer(feed) || isOnGpu(feed)));
  }

  /**
   * The recording for `key`. If there is none, one that differs only in tensors that stay on the CPU (a mask that grows
   * by a token, for example): the core's walk will find if that makes a difference on the GPU. Otherwise a new empty
   * one.
   */
  take(key: string, gpuKey = key): Recording {
    const recording = this.recordings.get(key) ?? this.borrow(key, gpuKey) ?? new Recording(key, gpuKey);
    this.recordings.delete(key);
    this.recordings.set(key, recording);
    for (const [oldest] of this.recordings) {
      if (this.recordings.size <= KEPT) break;
      this.drop(oldest);
    }
    return recording;
  }

  private borrow(key: string, gpuKey: string): Recording | undefined {
    const all = [...this.recordings.values()];
    // If it made a difference, borrowing recordings costs more than it saves.
    this.lending &&= !all.some(({ borrowed, diverged }) => borrowed && diverged);
    const recording = this.lending ? all.findLast((one) => one.gpuKey === gpuKey && !one.closed) : undefined;
    if (!recording) return undefined;
    this.recordings.delete(recording.key);
    recording.key = key;
    recording.borrowed = true;
    return recording;
  }

  /** The key of a run that names its capture. */
  static graphKey(graphId: number, key: string): string {
    return `graph ${graphId}: ${key}`;
  }

  /** Drops recordings with this graph id; with 0 also those without one. */
  dropGraph(graphId: number): void {
    const prefix = RecordingCache.graphKey(graphId, '');
    for (const key of [...this.recordings.keys()]) {
      if (key.startsWith(prefix) || (graphId === 0 && !key.startsWith('graph '))) this.drop(key);
    }
  }

  drop(key: string): void {
    this.recordings.get(key)?.destroy(this.arena);
    this.recordings.delete(key);
  }

  /** Drops the recording, if it is still there. */
  forget(recording: Recording): void {
    if (this.recordings.get(recording.key) === recording) this.drop(recording.key);
  }

  get size(): number {
    return this.recordings.size;
  }

  clear(): void {
    for (const key of [...this.recordings.keys()]) this.drop(key);
  }
}
