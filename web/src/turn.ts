// The event loop, for whose turns one may wait.

/** In Node it keeps the process alive, unless it says that it does not. */
type Port = MessagePort & { ref?(): void; unref?(): void };

let ports: { readonly heard: Port; readonly told: Port } | undefined;
const waiting: (() => void)[] = [];

function openPorts(): { readonly heard: Port; readonly told: Port } {
  const { port1: heard, port2: told }: { port1: Port; port2: Port } = new MessageChannel();
  heard.onmessage = () => {
    const next = waiting.shift();
    if (waiting.length === 0) heard.unref?.();
    next?.();
  };
  return { heard, told };
}

/** Lets the event loop turn once, other messages included. */
export function nextTurn(): Promise<void> {
  ports ??= openPorts();
  const { heard, told } = ports;
  heard.ref?.();
  return new Promise((resolve) => {
    waiting.push(resolve);
    told.postMessage(0);
  });
}
