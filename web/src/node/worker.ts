// Workers of worker_threads with a browser's names, on both sides.
import { parentPort, type Transferable, Worker } from 'node:worker_threads';
import type { HostWorker } from '../host';

type Told = ((event: { readonly data: unknown }) => void) | null;
type Failed = ((event: { readonly message: string }) => void) | null;

/** A worker as its starter sees it. */
export class NodeWorker implements HostWorker {
  private readonly worker: Worker;
  private told: Told = null;
  private failed: Failed = null;

  constructor(url: URL, name: string) {
    this.worker = new Worker(url, { name });
    this.worker.on('message', (data) => this.told?.({ data }));
    this.worker.on('error', (error) => this.failed?.({ message: error.message }));
  }

  set onmessage(told: HostWorker['onmessage']) {
    this.told = told as unknown as Told;
  }
  set onerror(failed: HostWorker['onerror']) {
    this.failed = failed as unknown as Failed;
  }

  postMessage(data: unknown): void {
    this.worker.postMessage(data);
  }

  ref(): void {
    this.worker.ref();
  }
  unref(): void {
    this.worker.unref();
  }

  terminate(): void {
    void this.worker.terminate();
  }
}

/** Inside a worker: `self`, with what scripts of workers use of it. */
export function becomeWorkerScope(): void {
  const port = parentPort!;
  Object.assign(globalThis, {
    self: globalThis,
    postMessage: (data: unknown, { transfer = [] }: { transfer?: readonly Transferable[] } = {}) =>
      port.postMessage(data, transfer),
  });
  Object.defineProperty(globalThis, 'onmessage', {
    set: (told: NonNullable<Told>) => port.on('message', (data) => told({ data })),
  });
}
