// What differs between browsers and other places where JavaScript runs: workers, files, who gives WebGPU. Browsers are
// the default; the entry for Node (node/) puts its own in place before anything else happens.

export interface HostWorker extends Pick<Worker, 'postMessage' | 'terminate' | 'onmessage' | 'onerror'> {
  /** Whether it keeps the process alive, where there is one. */
  ref?(): void;
  unref?(): void;
}

export interface Host {
  /** Cores of this machine. */
  readonly cores: number;
  /** A URL of what a user named: a URL, perhaps relative, or a path where there are paths. */
  resolve(file: string): string;
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Starts a worker of a module's script. */
  startWorker(url: URL, name: string): HostWorker;
  /** Why sessions run in the thread that makes them, in words; undefined where a worker is better. */
  withoutProxy(asked: boolean): string | undefined;
  /** Why this thread, or a worker of it, shares no memory with workers, in words; undefined where it may. */
  withoutSharing(inWorker?: boolean): string | undefined;
  /** Where WebGPU is asked for adapters; or why there is none, in words. */
  gpu(): Promise<GPU | string>;
  /** Bytes as a GPU's queue takes them. */
  forQueue(bytes: Uint8Array): Uint8Array;
}

const browser: Host = {
  get cores() {
    return navigator.hardwareConcurrency || 1;
  },
  /** As fetch does it: a page may have a <base>. */
  resolve: (file) => new URL(file, globalThis.document?.baseURI ?? globalThis.location?.href).href,
  fetch: (url, init) => fetch(url, init),
  /** Browsers start no modules of another origin, such as a CDN's, but import them. */
  startWorker(url, name) {
    if (url.origin === globalThis.location?.origin || url.protocol === 'blob:')
      return new Worker(url, { type: 'module', name });
    const script = new Blob([`import ${JSON.stringify(url.href)};`], { type: 'text/javascript' });
    return new Worker(URL.createObjectURL(script), { type: 'module', name });
  },
  withoutProxy(asked) {
    if (typeof Worker === 'undefined') return 'there are no workers';
    return typeof document === 'undefined' && !asked ? 'this is a worker already' : undefined;
  },
  withoutSharing(inWorker = 'WorkerGlobalScope' in globalThis) {
    if (!inWorker) return 'sessions in a page have no threads: use a worker';
    if (!globalThis.crossOriginIsolated) {
      return (
        'the page is not cross-origin isolated: its server must send Cross-Origin-Opener-Policy: same-origin and ' +
        'Cross-Origin-Embedder-Policy: require-corp'
      );
    }
    if (typeof Worker === 'undefined') return 'there are no workers here';
    return typeof SharedArrayBuffer === 'undefined' ? 'this browser has no SharedArrayBuffer' : undefined;
  },
  gpu: async () =>
    'gpu' in navigator
      ? navigator.gpu
      : 'this browser has no WebGPU here (navigator.gpu is missing; it needs a secure context)',
  forQueue: (bytes) => bytes,
};

export let host: Host = browser;

/** Before anything else is done. */
export function setHost(other: Host): void {
  host = other;
}
