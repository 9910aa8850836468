// A single kernel, without a session, for the JsepRun message and the tests of kernels.
import type { DType } from '../../schema';
import type { GpuProvider } from './provider';
import { planSegment } from '../../device/segment_plan';
import { type CallInput, makeTensor } from '../../device/call';
import type { SingleInput, SingleOutput } from '../../device/single';
import { accessOf, type Command } from '../../device/commands';
import { compileSegment, type GpuCommand, type GpuPlacement, type GpuSegment } from './segment';
import { cpuElementSize, elementCount } from '../../contract/elements';
import { type Kernel, KernelError } from '../../contract/kernel';
import { resolveKernel } from './resolve';

/** A compiled kernel call, which may be encoded repeatedly. */
export interface SingleCall {
  readonly outputs: readonly (SingleOutput | undefined)[];
  readonly segment: GpuSegment;
  /** The shaders used, in order. */
  readonly labels: readonly string[];
  /** Frees the call's own memory, not its outputs. */
  destroy(): void;
}

export async function prepareSingle<A>(
  provider: GpuProvider,
  kernel: Kernel<A>,
  attributes: A,
  inputs: readonly (SingleInput | undefined)[],
  wants: readonly boolean[],
): Promise<SingleCall> {
  const { gpu, buffers, caches } = provider;
  const outputs: (SingleOutput | undefined)[] = wants.map(() => undefined);
  const temps: { id: number; bytes: number }[] = [];
  const views: Command[] = [];
  // Temporary ids are negative here, to differ from persistent ones.
  const host = {
    output(i: number, dtype: DType, dims: readonly number[], bytes: number): number {
      const gpuId = buffers.allocate(bytes, caches.storage, `output ${i} of ${kernel.op}`);
      outputs[i] = { dtype, dims: [...dims], gpuId };
      return gpuId;
    },
    view(i: number, j: number, dims: readonly number[]): void {
      const source = inputs[j]!;
      if (!('gpuId' in source.data)) throw new KernelError(`${kernel.op}: a view of a host input`);
      const bytes = buffers.get(source.data.gpuId).bytes;
      const gpuId = buffers.allocate(bytes, caches.storage, `output ${i} of ${kernel.op}`);
      outputs[i] = { dtype: source.dtype, dims: [...dims], gpuId };
      const whole = Math.max(16, Math.ceil(bytes / 16) * 16);
      views.push({
        kind: 'copy',
        source: { id: source.data.gpuId, bytes: whole },
        target: { id: gpuId, bytes: whole },
      });
    },
    temp(bytes: number): number {
      temps.push({ id: -1 - temps.length, bytes });
      return -temps.length;
    },
  };
  const { commands } = resolveKernel(
    kernel,
    attributes,
    inputs.map((input) => callInput(provider, input)),
    wants,
    host,
    provider,
  );
  const all = [...commands, ...views];
  // Unchanged: the kernel's own shaders are to be tested or timed.
  const accesses = all.map((command) => ({ ...accessOf(command), group: undefined, inPlace: undefined }));
  const plan = planSegment(
    temps.map(({ id, bytes }) => ({ id, bytes, ...span(all, id) })),
    accesses,
  );
  const scratch = plan.newSlots.map((bytes) => caches.storage.acquire(bytes, `scratch of ${kernel.op}`));
  const placementOf = (id: number): GpuPlacement => {
    if (id >= 0) return buffers.get(id);
    const { slot, offset } = plan.places.get(id)!;
    return { buffer: scratch[slot], offset };
  };
  const segment = await compileSegment(gpu, caches.uniform, all as GpuCommand[], placementOf);
  return {
    outputs,
    segment,
    labels: commands.map((command) => (command.kind === 'dispatch' ? command.program.label : 'copy')),
    destroy() {
      segment.destroy();
      for (const buffer of scratch) caches.storage.release(buffer);
    },
  };
}

function callInput({ gpu }: GpuProvider, input: SingleInput | undefined): CallInput | undefined {
  if (!input) return undefined;
  const { dtype, dims, data } = input;
  if ('gpuId' in data) return { tensor: makeTensor(gpu.elements, data.gpuId, dtype, dims, 'gpu') };
  const size = cpuElementSize(dtype);
  if (size !== undefined && data.bytes.byteLength !== elementCount(dims) * size) {
    throw new KernelError(`an input of shape [${dims}] has ${data.bytes.byteLength} bytes`);
  }
  return { tensor: makeTensor(gpu.elements, 0, dtype, dims, 'cpu'), bytes: data.bytes };
}

/** First and last command that accesses `id`. */
function span(commands: readonly Command[], id: number): { start: number; end: number } {
  let start = Infinity;
  let end = 0;
  commands.forEach((command, i) => {
    const regions = command.kind === 'dispatch' ? command.bindings : [command.source, command.target];
    if (!regions.some((region) => region.id === id)) return;
    start = Math.min(start, i);
    end = i;
  });
  return { start: Math.min(start, end), end };
}
