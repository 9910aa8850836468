// Firefox settles mapAsync on a slow timer unless something is submitted meanwhile; empty submits bring 100 ms down to about one.
const NEEDS_PUMP = typeof navigator !== 'undefined' && /\bFirefox\//.test(navigator.userAgent);
/** So many rounds as quickly as the event loop turns, then with growing pauses: a spin without bound hangs the page. */
const QUICK_ROUNDS = 4;
const LONGEST_PAUSE_MS = 8;

/** Waits for `promise`, helping the queue along where the browser wants that. */
export async function pump<T>(device: GPUDevice, promise: Promise<T>): Promise<T> {
  if (!NEEDS_PUMP) return promise;
  let settled = false;
  const mark = () => { settled = true; };
  promise.then(mark, mark);
  for (let round = 0; !settled; round++) {
    device.queue.submit([]);
    await (round < QUICK_ROUNDS ? nextTurn() : pause(Math.min(round - QUICK_ROUNDS + 1, LONGEST_PAUSE_MS)));
  }
  return promise;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
