// The way to Python's servers: on this machine by their ports, and from elsewhere through the gateway from which the
// page was loaded (py_ort/browser/gateway.py). It has one port, and a secret as the first part of its paths.
import { host, setHost } from '../host';

const folder = new URL('.', self.location.href);
const throughGateway = folder.pathname !== '/';

/** The URL of the websocket to which a page or worker connects with its token. */
export function socketUrl(port: string, token: string): string {
  const query = `token=${encodeURIComponent(token)}`;
  if (!throughGateway) return `ws://127.0.0.1:${port}/?${query}`;
  const url = new URL(`socket?${query}`, folder);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}

/** The reachable form of a URL that names Python's own machine. */
export function reachable(url: string | URL): string | URL {
  const { origin, pathname, search } = new URL(url, folder);
  return throughGateway && origin !== folder.origin ? new URL(`.${pathname}${search}`, folder) : url;
}

/** Call it before any fetch. */
export function fetchThroughGateway(): void {
  const direct = host;
  const fetch: typeof host.fetch = (url, init) => direct.fetch(reachable(url), init);
  if (throughGateway) setHost(Object.create(direct, { fetch: { value: fetch } }));
}
