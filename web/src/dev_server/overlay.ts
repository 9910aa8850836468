// A part that `py-ort serve` adds to each page: it shows models being compiled, and their errors, and reloads the page
// after a file has changed.

interface Event {
  readonly kind: 'hello' | 'progress' | 'compiled' | 'failed' | 'changed';
  /** In hello: the identity of the server. */
  readonly server?: string;
  readonly file?: string;
  readonly text?: string;
  readonly done?: number;
  readonly total?: number;
}

/** In its own shadow tree: the page's styles do not apply to it, nor its styles to the page. */
class Overlay {
  private readonly host = document.createElement('div');
  private readonly lines = new Map<string, HTMLElement>();
  private readonly root = this.host.attachShadow({ mode: 'open' });

  constructor() {
    // Set by the object model, which no page's policy forbids.
    Object.assign(this.host.style, {
      position: 'fixed',
      right: '12px',
      bottom: '12px',
      zIndex: '2147483647',
      maxWidth: 'calc(100vw - 24px)',
      font: '13px/1.4 system-ui, sans-serif',
    });
    this.host.id = 'py-ort-serve';
  }

  say(file: string, text: string, wrong = false): void {
    const line = this.lines.get(file) ?? document.createElement('div');
    this.lines.set(file, line);
    line.textContent = `${file}: ${text}`;
    Object.assign(line.style, {
      margin: '4px 0 0',
      padding: '6px 10px',
      borderRadius: '4px',
      whiteSpace: 'pre-wrap',
      overflowWrap: 'anywhere',
      color: '#fff',
      background: wrong ? '#b3261e' : '#1d2229',
    });
    this.root.append(line);
    document.body.append(this.host);
  }

  forget(file: string): void {
    this.lines.get(file)?.remove();
    this.lines.delete(file);
    if (this.lines.size === 0) this.host.remove();
  }
}

const overlay = new Overlay();
const source = new EventSource('/py_ort/events');
let server: string | undefined;

source.onmessage = ({ data }: MessageEvent<string>) => {
  const event = JSON.parse(data) as Event;
  const { file = '', text = '', done = 0, total = 0 } = event;
  if (event.kind === 'hello') {
    // Another server than before: its files may differ, too.
    if (server !== undefined && server !== event.server) location.reload();
    server = event.server;
  } else if (event.kind === 'changed') location.reload();
  else if (event.kind === 'progress') overlay.say(file, total ? `${text} ${done}/${total}` : text);
  else if (event.kind === 'failed') overlay.say(file, text, true);
  else overlay.forget(file);
};
// A page that is left keeps no connection: browsers allow six per server.
addEventListener('pagehide', () => source.close());
