// Error scopes around GPU work, and what to throw when they caught something.
import { ErrorCode } from '../schema';
import { RuntimeError } from '../errors';
import { describeGpuError, type Gpu, OUT_OF_MEMORY } from './device';

const FILTERS: readonly GPUErrorFilter[] = ['validation', 'out-of-memory', 'internal'];

/** Runs `work` inside error scopes; whatever the GPU complains of is thrown. */
export async function inErrorScopes<T>(gpu: Gpu, work: () => Promise<T>): Promise<T> {
  for (const filter of FILTERS) gpu.device.pushErrorScope(filter);
  let popped: Promise<(GPUError | null)[]> | undefined;
  const pop = () => (popped ??= Promise.all([...FILTERS].reverse().map(() => gpu.device.popErrorScope())));
  try {
    const result = await work();
    const errors = (await pop()).filter((error) => error !== null);
    if (errors.length > 0) throw gpuError(errors.map(describeGpuError));
    return result;
  } finally {
    await pop().catch(() => undefined);
  }
}

/** Throws when errors that no scope caught came in during a run, with all that follow from them. */
export async function throwUncaptured(gpu: Gpu): Promise<void> {
  gpu.ensureAlive();
  const errors = gpu.takeUncaptured();
  if (errors.length === 0) return;
  // They are the run's, and not the next one's. Events come after promises.
  await gpu.device.queue.onSubmittedWorkDone().catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve));
  throw gpuError([...errors, ...gpu.takeUncaptured()]);
}

function gpuError(messages: readonly string[]): RuntimeError {
  const memory = messages.some((message) => message.startsWith(OUT_OF_MEMORY));
  return new RuntimeError(memory ? ErrorCode.out_of_memory : ErrorCode.shader, `WebGPU: ${messages.join('; ')}`);
}
