// Workers of modules, also of modules of another origin, such as a CDN's: browsers start none of these, but import
// them.

export function startWorker(url: URL, name: string): Worker {
  if (url.origin === globalThis.location?.origin || url.protocol === 'blob:')
    return new Worker(url, { type: 'module', name });
  const script = new Blob([`import ${JSON.stringify(url.href)};`], { type: 'text/javascript' });
  return new Worker(URL.createObjectURL(script), { type: 'module', name });
}
