// Error scopes around GPU work, and the error to throw for those that they catch.
import { ErrorCode } from '../../schema';
import { type ErrorPlace, RuntimeError } from '../../errors';
import type { ProviderSettings } from '../../device/options';
import type { RunErrors } from '../../device/provider';
import { describeGpuError, type Gpu, OUT_OF_MEMORY } from './device';

export type ValidationMode = ProviderSettings<'webgpu'>['validationMode'];

const FILTERS: readonly GPUErrorFilter[] = ['validation', 'out-of-memory', 'internal'];

/**
 * True if errors that no scope catches are reported each time, and before the GPU's next work. Firefox reports each
 * text once in a device's life.
 */
const TELLS_UNCAPTURED = typeof navigator !== 'undefined' && /Chrom(e|ium)\/|Node\.js\//.test(navigator.userAgent);

/** Opens a scope for each kind of error. The returned function closes them, and returns their errors. */
function openScopes(gpu: Gpu): () => Promise<string[]> {
  for (const filter of FILTERS) gpu.device.pushErrorScope(filter);
  return async () => {
    // They reject when the device is lost, which is reported elsewhere.
    const popped = FILTERS.map(() => gpu.device.popErrorScope().catch(() => null));
    return (await Promise.all(popped)).flatMap((error) => (error ? [describeGpuError(error)] : []));
  };
}

/** Runs `work` inside error scopes; throws the GPU's errors. */
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
 * The GPU's errors in one run. Objects are made in error scopes. Repeated work needs scopes only if the browser does
 * not report errors by itself.
 */
export class GpuRunErrors implements RunErrors {
  private readonly caught: Promise<string[]>[] = [];
  private readonly told = new Set<string>();
  /** True for a run that ends before the browser has reported on its work. */
  untold = false;

  constructor(
    private readonly gpu: Gpu,
    private readonly mode: ValidationMode,
  ) {}

  /** Does a part of the run's work; `making`: true if it makes something on the GPU. */
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

  /** All errors so far, after the run's last work on the GPU; undefined: none, without waiting. */
  found(): Promise<string[]> | undefined {
    this.gpu.ensureAlive();
    this.takeUncaptured();
    return this.caught.length > 0 || this.told.size > 0 ? this.collect() : undefined;
  }

  /** The same for a failed run: late errors belong to it, and not to the next one. */
  async foundLate(): Promise<string[]> {
    await this.collect();
    await this.gpu.device.queue.onSubmittedWorkDone().catch(() => undefined);
    // Events arrive after promises.
    await new Promise((resolve) => setTimeout(resolve));
    this.takeUncaptured();
    return [...this.told];
  }

  private async collect(): Promise<string[]> {
    for (const errors of await Promise.all(this.caught.splice(0))) for (const error of errors) this.told.add(error);
    return [...this.told];
  }

  /** If they are only logged, they have been. */
  private takeUncaptured(): void {
    const errors = this.gpu.takeUncaptured();
    if (this.mode !== 'disabled') for (const error of errors) this.told.add(error);
  }
}

/** The error to throw for the GPU's messages. */
export function gpuError(messages: readonly string[], place?: ErrorPlace): RuntimeError {
  const memory = messages.some((message) => message.startsWith(OUT_OF_MEMORY));
  const code = memory ? ErrorCode.out_of_memory : ErrorCode.shader;
  const node = place?.node === undefined ? '' : `node "${place.node}" (${place.opType}): `;
  return new RuntimeError(code, `${node}WebGPU: ${messages.join('; ')}`, place);
}
