// The page does nothing but start workers: the runtime lives in worker.js, which gets the page's own query.

/** What a worker may ask of the page. */
export interface PageRequest {
  readonly openWorker: string;
}

function start(url: string): void {
  const worker = new Worker(url, { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<PageRequest>) => start(data.openWorker));
  worker.addEventListener('error', (event) => {
    console.error(`worker ${url.split('?')[0]} failed: ${event.message || 'it could not be loaded'} (${event.filename}:${event.lineno})`);
  });
}

start(`worker.js${location.search}`);
