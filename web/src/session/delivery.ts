// Delivers a run's outputs: read back, left in a new GPU buffer, or written into a bound buffer.
import type { DType } from '../schema';
import { invalid } from '../errors';
import { storageBytes } from '../device/memory_plan';
import { elementCount } from '../contract/elements';
import type { Kept, Wanted } from '../device/recorder';
import type { ClosedOutput } from '../device/recording';
import { checkOutputFits } from './gpu_tensors';
import type { RunOptions } from './run_options';
import type { SessionState } from './state';
import { isContainer, named, type Value } from '../wire/values';

type Maker = (parts: readonly Uint8Array[]) => Value;

export class Delivery {
  readonly read: Wanted[] = [];
  readonly keep: Kept[] = [];
  /** True if `collect` uploads something to the GPU. */
  uploads = false;
  /** Buffers that have no owner yet. */
  private readonly made: number[] = [];
  private readonly makers: readonly (readonly [name: string, maker: Maker])[];

  constructor(
    private readonly session: SessionState,
    outputs: readonly ClosedOutput[],
    names: readonly string[],
    private readonly options: Pick<RunOptions, 'bind' | 'outputsOnGpu' | 'copy'>,
  ) {
    const wanted = names.map((name) => [name, outputs[session.plan.outputs.indexOf(name)]] as const);
    // All are checked before anything is made for one.
    for (const [name, output] of wanted) this.check(name, output);
    this.makers = wanted.map(([name, output]) => [name, this.maker(name, output)] as const);
  }

  /** Returns the values; call it when the bytes of `read` are there. */
  collect(parts: readonly Uint8Array[]): { [name: string]: Value } {
    return Object.fromEntries(this.makers.map(([name, maker]) => [name, maker(parts)]));
  }

  /** The run failed: frees everything made for it. */
  discard(): void {
    for (const gpuId of this.made.splice(0)) this.session.provider?.buffers.free(gpuId);
  }

  private leaves(name: string): boolean {
    return named(this.options.bind, name) !== undefined || (this.options.outputsOnGpu?.includes(name) ?? false);
  }

  private check(name: string, output: ClosedOutput): void {
    const bound = named(this.options.bind, name);
    if (!isContainer(output)) {
      if (bound) checkOutputFits(name, bound, output.dtype, output.dims);
      if (this.leaves(name) && !this.session.provider) throw invalid('this session has no device to leave outputs on');
    } else if (this.leaves(name)) {
      throw invalid(`output "${name}" is no tensor: it cannot be left on a device`);
    }
  }

  private maker(name: string, output: ClosedOutput): Maker {
    if (isContainer(output)) return () => output;
    const { dtype, dims, data } = output;
    const leave = this.leaves(name);
    if ('bytes' in data) this.uploads ||= leave;
    if ('bytes' in data)
      return () => (leave ? this.upload(name, dtype, dims, data.bytes) : { dtype, dims, data: data.bytes });
    const { elements } = this.session.provider!;
    const bytes = elementCount(dims) * elements.size(dtype);
    if (leave) {
      const gpuId = this.place(name, bytes);
      this.keep.push({ id: data.gpuId, bytes: storageBytes(bytes), as: gpuId });
      return () => ({ dtype, dims, gpuId });
    }
    const part = this.read.push({ id: data.gpuId, bytes }) - 1;
    return (parts) => {
      const narrowed = elements.narrow(dtype, parts[part]);
      // Mapped memory is gone after this.
      const { copy = (gone: Uint8Array) => gone.slice() } = this.options;
      return { dtype, dims, data: narrowed === parts[part] ? copy(narrowed) : narrowed };
    };
  }

  /** The buffer for an output: the one bound to it, or a new one. */
  private place(name: string, bytes: number): number {
    const bound = named(this.options.bind, name);
    if (bound) return bound.gpuId;
    const { provider, memory } = this.session.gpuSession!;
    const gpuId = provider.buffers.allocate(bytes, memory.tensors, `output ${name}`);
    this.made.push(gpuId);
    return gpuId;
  }

  /** An output that the CPU computed. */
  private upload(name: string, dtype: DType, dims: readonly number[], bytes: Uint8Array): Value {
    const provider = this.session.provider!;
    const wide = provider.elements.widen(dtype, bytes);
    const gpuId = this.place(name, wide.byteLength);
    provider.write(provider.buffers.get(gpuId), wide);
    return { dtype, dims, gpuId };
  }
}
