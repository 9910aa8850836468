// Waits: turns of the event loop, pauses, and the signals that end them.

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

/** Aborts with the first of two signals. */
export function eitherOf(signal: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return signal ? AbortSignal.any([signal, other]) : other;
}

/** Waits. @throws the signal's reason, when it aborts. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', abort);
  });
}

/**
 * Waits for work. When a signal aborts, it waits no longer: the work may wait for a server that never answers.
 *
 * @param undo called with a result that comes too late.
 */
export function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  undo: (late: T) => unknown = () => undefined,
): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(signal.reason);
      work.then(undo).catch(() => undefined);
    };
    signal.addEventListener('abort', abort);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    if (signal.aborted) abort();
  });
}

/** Handles messages and timers that are due: a timer may come in the second turn only. */
export async function dueEvents(): Promise<void> {
  await nextTurn();
  await nextTurn();
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
