// Differences between browsers and other JavaScript hosts: workers, files, the source of WebGPU. Browsers are the
// default; the entry for Node (node/) installs its own host first.

export interface HostWorker extends Pick<Worker, 'postMessage' | 'terminate' | 'onmessage' | 'onerror'> {
  /** Makes it keep the process alive or not, in hosts with a process. */
  ref?(): void;
  unref?(): void;
}

export interface Host {
  /** Cores of this machine. */
  readonly cores: number;
  /** The URL for a user's name of a file: a URL, which may be relative, or a path if the host has paths. */
  resolve(file: string): string;
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  /** Starts a worker of a module's script. */
  startWorker(url: URL, name: string): HostWorker;
  /** The reason why sessions run in the thread that makes them; undefined if a worker is better. */
  withoutProxy(asked: boolean): string | undefined;
  /** The reason why this thread, or its worker, shares no memory with workers; undefined if it can. */
  withoutSharing(inWorker?: boolean): string | undefined;
  /** The source of WebGPU's adapters, or the reason why there is none. */
  gpu(): Promise<GPU | string>;
  /** Bytes in a form that a GPU's queue accepts. */
  forQueue(bytes: Uint8Array): Uint8Array;
}

const browser: Host = {
  get cores() {
    return navigator.hardwareConcurrency || 1;
  },
  /** Like fetch: a page may have a <base>. */
  resolve: (file) => new URL(file, globalThis.document?.baseURI ?? globalThis.location?.href).href,
  fetch: (url, init) => fetch(url, init),
  /** Browsers refuse to start a worker with a module of another origin, such as a CDN's, but can import it. */
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

/** Call it first. */
export function setHost(other: Host): void {
  host = other;
}
