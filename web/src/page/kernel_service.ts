// Buffers and kernels used one by one from Python: the JSEP calls as messages, without a session.
import { Location, type TensorDescT } from '../schema';
import { invalid } from '../errors';
import { type Counters, countersSince } from '../device/counters';
import { roundUp } from '../device/memory_plan';
import type { GpuProvider } from '../providers/webgpu/provider';
import { inErrorScopes } from '../providers/webgpu/scopes';
import { Attributes } from '../contract/attributes';
import type { Kernel } from '../contract/kernel';
import { findKernel } from '../providers/webgpu/registry';
import { prepareSingle, type SingleInput } from '../providers/webgpu/single';
import type { Runtime } from '../session/runtime';
import type { TensorOnGpu } from '../wire/values';
import { userKernels } from '../providers/webgpu/user_kernels';
import { readTensor } from '../wire/messages';

/** Keeps its device open. */
interface ServedKernel {
  readonly deviceId: number;
  readonly provider: GpuProvider;
  readonly kernel: Kernel;
  readonly attributes: unknown;
}

export class KernelService {
  private readonly kernels = new Map<number, ServedKernel>();
  private nextKernel = 1;

  constructor(private readonly runtime: Runtime) {}

  async alloc(deviceId: number, size: number): Promise<number> {
    const { buffers, caches } = await this.runtime.device(deviceId);
    return buffers.allocate(size, caches.storage, 'JsepAlloc', true);
  }

  async free(id: number): Promise<void> {
    (await this.ownerOf(id)).buffers.free(id);
  }

  async upload(id: number, bytes: Uint8Array): Promise<void> {
    const { buffers, gpu } = await this.ownerOf(id);
    const memory = buffers.get(id);
    checkSize(id, bytes.byteLength, memory.bytes);
    gpu.write(memory.buffer, memory.offset, bytes);
  }

  async copy(source: number, target: number, size: number): Promise<void> {
    const { buffers, gpu } = await this.ownerOf(source);
    const [from, to] = [buffers.get(source), buffers.get(target)];
    checkSize(source, size, from.bytes);
    checkSize(target, size, to.bytes);
    const encoder = gpu.device.createCommandEncoder();
    encoder.copyBufferToBuffer(from.buffer, from.offset, to.buffer, to.offset, roundUp(size, 4));
    gpu.submit([encoder.finish()]);
  }

  async download(id: number, size: number): Promise<Uint8Array> {
    const provider = await this.ownerOf(id);
    checkSize(id, size, provider.buffers.get(id).bytes);
    return provider.read(id, size);
  }

  async createKernel(
    deviceId: number,
    opType: string,
    domain: string,
    attributes: Uint8Array,
    userKernel = '',
  ): Promise<number> {
    const kernel = findKernel(opType, domain, userKernels(userKernel && `[${userKernel}]`));
    const provider = await this.runtime.contexts.enter(deviceId, {}, false);
    this.kernels.set(this.nextKernel, {
      deviceId,
      provider,
      kernel,
      attributes: kernel.attributes?.(new Attributes(attributes)),
    });
    return this.nextKernel++;
  }

  releaseKernel(id: number): void {
    const found = this.kernels.get(id);
    this.kernels.delete(id);
    if (found) this.runtime.contexts.leave(found.deviceId, found.provider);
  }

  /** Runs a kernel; its outputs stay on the GPU, for the caller to free. */
  async run(
    id: number,
    inputs: readonly TensorDescT[],
    payload: Uint8Array,
    outputs: number,
  ): Promise<{ tensors: TensorOnGpu[]; counters: Counters }> {
    const found = this.kernels.get(id);
    if (!found) throw invalid(`this page has no kernel ${id}`);
    const { provider, kernel, attributes } = found;
    provider.gpu.ensureAlive();
    for (const input of inputs) if (input.location === Location.device) await this.checkDevice(input, provider);
    const before = { ...provider.gpu.counters };
    const tensors = await inErrorScopes(provider.gpu, async () => {
      const wants = Array.from({ length: outputs }, () => true);
      const call = await prepareSingle(
        provider,
        kernel,
        attributes,
        inputs.map((input) => readInput(input, payload)),
        wants,
      );
      const encoder = call.segment.encode(provider.gpu.device.createCommandEncoder());
      provider.gpu.submit([encoder.finish()]);
      call.destroy();
      return call.outputs.map((output) => output!);
    });
    return { tensors, counters: countersSince(before, provider.gpu.counters) };
  }

  private async checkDevice({ name, gpuId }: TensorDescT, provider: GpuProvider): Promise<void> {
    if (provider.buffers.has(gpuId) || (await this.ownerOf(gpuId)) === provider) return;
    throw invalid(`input ${String(name)} is on another GPU device than the kernel`);
  }

  private async ownerOf(id: number): Promise<GpuProvider> {
    const owner = await this.runtime.contexts.ownerOf(id);
    owner?.provider.gpu.ensureAlive();
    if (owner) return owner.provider;
    throw invalid(`there is no GPU buffer ${id}: it was freed, or its device was lost`);
  }
}

function readInput(description: TensorDescT, payload: Uint8Array): SingleInput | undefined {
  if (description.location === Location.none) return undefined;
  const tensor = readTensor(description, payload);
  const { dtype, dims } = tensor;
  return { dtype, dims, data: 'gpuId' in tensor ? { gpuId: tensor.gpuId } : { bytes: tensor.data } };
}

function checkSize(id: number, size: number, room: number): void {
  if (size > room) throw invalid(`${size} bytes do not fit GPU buffer ${id}, which has ${room}`);
}
