// A browser notices the end of GPU work only when it looks: Chromium every 2 to 3 ms, Firefox every 100 ms. A submit
// makes it look at once, so an occasional empty command buffer reduces the wait to the GPU's own time.
import { nextTurn, pause } from '../../turn';
import type { Gpu } from './device';

const FIREFOX = typeof navigator !== 'undefined' && /\bFirefox\//.test(navigator.userAgent);
/** Time between two submits: more of them only delay the GPU process. */
const SPACING_MS = 0.15;
/** Time to continue without a pause; after it, Chromium's own pace costs little in comparison. */
const QUICK_MS = 20;
const LONGEST_PAUSE_MS = 8;

/** Waits for `promise`, and speeds up the queue if that helps: a software adapter needs the processor itself. */
export async function pump<T>(gpu: Gpu, promise: Promise<T>): Promise<T> {
  gpu.awaited++;
  try {
    return await pumped(gpu, promise);
  } finally {
    gpu.awaited--;
  }
}

async function pumped<T>(gpu: Gpu, promise: Promise<T>): Promise<T> {
  if (gpu.traits.software && !FIREFOX) return promise;
  let settled = false;
  const mark = () => {
    settled = true;
  };
  promise.then(mark, mark);
  const began = performance.now();
  for (let next = began + SPACING_MS; !settled; ) {
    const now = performance.now();
    const quick = now - began < QUICK_MS;
    if (!quick && !FIREFOX) break;
    if (now >= next) {
      gpu.device.queue.submit([gpu.device.createCommandEncoder({ label: 'pump' }).finish()]);
      next = now + SPACING_MS;
    }
    await (quick ? nextTurn() : pause(Math.min((now - began) / QUICK_MS, LONGEST_PAUSE_MS)));
  }
  return promise;
}
