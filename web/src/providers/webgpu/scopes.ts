// Error scopes around GPU work, and what to throw when they caught something.
import { ErrorCode } from '../../schema';
import { type ErrorPlace, RuntimeError } from '../../errors';
import type { ProviderSettings } from '../../device/options';
import type { RunErrors } from '../../device/provider';
import { describeGpuError, type Gpu, OUT_OF_MEMORY } from './device';

export type ValidationMode = ProviderSettings<'webgpu'>['validationMode'];

const FILTERS: readonly GPUErrorFilter[] = ['validation', 'out-of-memory', 'internal'];

/**
 * Whether errors that no scope catches are told each time, and before what the GPU does next. Firefox tells each text
 * once in a device's life.
 */
const TELLS_UNCAPTURED = typeof navigator !== 'undefined' && /Chrom(e|ium)\/|Node\.js\//.test(navigator.userAgent);

/** Opens a scope for each kind of error. What it gives closes them, and tells what they caught. */
function openScopes(gpu: Gpu): () => Promise<string[]> {
  for (const filter of FILTERS) gpu.device.pushErrorScope(filter);
  return async () => {
    // They reject when the device is lost, which is said elsewhere.
    const popped = FILTERS.map(() => gpu.device.popErrorScope().catch(() => null));
    return (await Promise.all(popped)).flatMap((error) => (error ? [describeGpuError(error)] : []));
  };
}

/** Runs `work` inside error scopes; whatever the GPU complains of is thrown. */
export async function inErrorScopes<T>(gpu: Gpu, work: () => Promise<T>): Promise<T> {
  const close = openScopes(gpu);
  let closed: Promise<string[]> | undefined;
  try {
    const result = await work();
    const errors = await (closed = close());
    if (errors.length > 0) throw gpuError(errors);
    return result;
  } finally {
    await (closed ?? close());
  }
}

/**
 * What the GPU complains of in one run. What a run makes, it makes in error scopes; what it only does again needs them
 * where the browser does not tell of errors by itself.
 */
export class GpuRunErrors implements RunErrors {
  private readonly caught: Promise<string[]>[] = [];
  private readonly told = new Set<string>();
  /** Set for a run that ends before the browser has told of what it did. */
  untold = false;

  constructor(
    private readonly gpu: Gpu,
    private readonly mode: ValidationMode,
  ) {}

  /** Does a part of the run's work; `making`: whether it makes something on the GPU. */
  during<T>(making: boolean, work: () => T): T {
    const scoped = making || this.untold || !TELLS_UNCAPTURED || this.mode === 'full';
    if (!scoped || this.mode === 'disabled') return work();
    const close = openScopes(this.gpu);
    try {
      return work();
    } finally {
      this.caught.push(close());
    }
  }

  /** All of them so far, when the run's last work on the GPU is over; undefined: none, without waiting. */
  found(): Promise<string[]> | undefined {
    this.gpu.ensureAlive();
    this.takeUncaptured();
    return this.caught.length > 0 || this.told.size > 0 ? this.collect() : undefined;
  }

  /** The same for a run that failed: errors that are told late are its own, and not the next one's. */
  async foundLate(): Promise<string[]> {
    await this.collect();
    await this.gpu.device.queue.onSubmittedWorkDone().catch(() => undefined);
    // Events come after promises.
    await new Promise((resolve) => setTimeout(resolve));
    this.takeUncaptured();
    return [...this.told];
  }

  private async collect(): Promise<string[]> {
    for (const errors of await Promise.all(this.caught.splice(0))) for (const error of errors) this.told.add(error);
    return [...this.told];
  }

  /** Where they only are logged, they were. */
  private takeUncaptured(): void {
    const errors = this.gpu.takeUncaptured();
    if (this.mode !== 'disabled') for (const error of errors) this.told.add(error);
  }
}

/** The error to throw for what the GPU said. */
export function gpuError(messages: readonly string[], place?: ErrorPlace): RuntimeError {
  const memory = messages.some((message) => message.startsWith(OUT_OF_MEMORY));
  const code = memory ? ErrorCode.out_of_memory : ErrorCode.shader;
  const node = place?.node === undefined ? '' : `node "${place.node}" (${place.opType}): `;
  return new RuntimeError(code, `${node}WebGPU: ${messages.join('; ')}`, place);
}
