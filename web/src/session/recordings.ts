// The recordings of a session, by input shapes; the least recently used go first.
import type { Arena } from '../gpu/arena';
import { Recording } from '../jsep/recording';
import { isContainer, isOnGpu, type Value } from './tensors';

const KEPT = 16;

export class RecordingCache {
  private readonly recordings = new Map<string, Recording>();

  constructor(private readonly arena: Arena) {}

  /** Tensors on the GPU are bound as they are, so their buffers are part of the key. */
  static key(feeds: readonly Value[]): string {
    return feeds.map((feed): string => (isContainer(feed)
      ? `${feed.kind}(${RecordingCache.key(feed.items)})`
      : `${feed.dtype}[${feed.dims}]${isOnGpu(feed) ? `@${feed.gpuId}` : ''}`)).join(' ');
  }

  /** The recording for `key`, a new empty one if need be. */
  take(key: string): Recording {
    const recording = this.recordings.get(key) ?? new Recording(key);
    this.recordings.delete(key);
    this.recordings.set(key, recording);
    for (const [oldest] of this.recordings) {
      if (this.recordings.size <= KEPT) break;
      this.drop(oldest);
    }
    return recording;
  }

  /** The key of a run that names the capture it is of. */
  static graphKey(graphId: number, key: string): string {
    return `graph ${graphId}: ${key}`;
  }

  /** Drops what has this graph id; with 0 also what has none. */
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

  get size(): number {
    return this.recordings.size;
  }

  clear(): void {
    for (const key of [...this.recordings.keys()]) this.drop(key);
  }
}
