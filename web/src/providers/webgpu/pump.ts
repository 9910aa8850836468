// A browser notices that the GPU is done only when it next looks: Chromium every 2 to 3 ms, Firefox every 100 ms.
// Whatever is submitted makes it look at once, so an empty command buffer now and then brings the wait down to what the
// GPU takes.
import { nextTurn } from '../../turn';
import type { Gpu } from './device';

const FIREFOX = typeof navigator !== 'undefined' && /\bFirefox\//.test(navigator.userAgent);
/** Time between two submits: more of them only keep the GPU process from its work. */
const SPACING_MS = 0.15;
/** How long to go on without a pause; after that Chromium's own pace costs little of the whole. */
const QUICK_MS = 20;
const LONGEST_PAUSE_MS = 8;

/**
 * Waits for `promise`, helping the queue along where that pays: a software adapter needs the processor more than we the
 * answer.
 */
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

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
