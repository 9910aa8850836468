// Buffers and single kernels, used from Python: the JSEP calls as messages, without a session.
import { type CallT, Location, type TensorDescT } from '../schema';
import { invalid } from '../errors';
import { type Counters, countersSince } from '../device/counters';
import { capability, type OpenDevice } from '../device/module';
import type { SingleInput, SingleKernel, SingleKernels } from '../device/single';
import type { Runtime } from '../session/runtime';
import type { TensorOnGpu } from '../wire/values';
import { readTensor } from '../wire/messages';

/** Keeps its device open. */
interface ServedKernel {
  readonly deviceId: number;
  readonly device: OpenDevice;
  readonly run: SingleKernel;
}

export class KernelService {
  private readonly kernels = new Map<number, ServedKernel>();
  private nextKernel = 1;

  constructor(private readonly runtime: Runtime) {}

  async alloc(provider: string, deviceId: number, size: number): Promise<number> {
    return (await this.runtime.devices(provider).open(deviceId)).allocate(size);
  }

  async free(id: number): Promise<void> {
    (await this.ownerOf(id)).buffers.free(id);
  }

  async upload(id: number, bytes: Uint8Array): Promise<void> {
    const device = await this.ownerOf(id);
    const memory = device.buffers.get(id);
    checkSize(id, bytes.byteLength, memory.bytes);
    device.write(memory, bytes);
  }

  async copy(source: number, target: number, size: number): Promise<void> {
    const device = await this.ownerOf(source);
    checkSize(source, size, device.buffers.get(source).bytes);
    if (!device.buffers.has(target)) throw invalid(`tensors ${source} and ${target} are on two devices`);
    checkSize(target, size, device.buffers.get(target).bytes);
    await device.copy(source, target, size);
  }

  async download(id: number, size: number): Promise<Uint8Array> {
    const device = await this.ownerOf(id);
    checkSize(id, size, device.buffers.get(id).bytes);
    return device.read(id, size);
  }

  async createKernel(
    provider: string,
    deviceId: number,
    opType: string,
    domain: string,
    attributes: Uint8Array,
    userKernel = '',
  ): Promise<number> {
    const device = await this.runtime.devices(provider).enter(deviceId, {}, false);
    try {
      const run = kernelsOf(device).make(opType, domain, attributes, userKernel);
      this.kernels.set(this.nextKernel, { deviceId, device, run });
    } catch (error) {
      this.runtime.leave(deviceId, device);
      throw error;
    }
    return this.nextKernel++;
  }

  /** Reasons why a device refuses calls; "": it accepts the call. */
  async refusals(provider: string, deviceId: number, calls: readonly CallT[], payload: Uint8Array): Promise<string[]> {
    const device = await this.runtime.devices(provider).open(deviceId);
    const refusal = capability(device.refusal?.bind(device), device.name, 'limits of its own');
    return calls.map(({ opType, domain, attributes, inputs, outputs }) => {
      const call = {
        op: String(opType),
        domain: String(domain ?? ''),
        attributes: Uint8Array.from(attributes),
        outputs,
      };
      return refusal({ ...call, inputs: inputs.map((input) => readInput(input, payload)) }) ?? '';
    });
  }

  releaseKernel(id: number): void {
    const found = this.kernels.get(id);
    this.kernels.delete(id);
    if (found) this.runtime.leave(found.deviceId, found.device);
  }

  /** Runs a kernel; its outputs stay on the GPU, and the caller frees them. */
  async run(
    id: number,
    inputs: readonly TensorDescT[],
    payload: Uint8Array,
    outputs: number,
  ): Promise<{ tensors: TensorOnGpu[]; counters: Counters }> {
    const found = this.kernels.get(id);
    if (!found) throw invalid(`this page has no kernel ${id}`);
    const { device, run } = found;
    device.ensureAlive();
    for (const input of inputs) if (input.location === Location.device) await this.checkDevice(input, device);
    const before = { ...device.counters };
    const made = await run(
      inputs.map((input) => readInput(input, payload)),
      outputs,
    );
    return { tensors: [...made], counters: countersSince(before, device.counters) };
  }

  private async checkDevice({ name, gpuId }: TensorDescT, device: OpenDevice): Promise<void> {
    if (device.buffers.has(gpuId) || (await this.ownerOf(gpuId)) === device) return;
    throw invalid(`input ${String(name)} is on another GPU device than the kernel`);
  }

  private async ownerOf(id: number): Promise<OpenDevice> {
    const owner = await this.runtime.ownerOf(id);
    owner?.device.ensureAlive();
    if (owner) return owner.device;
    throw invalid(`there is no GPU buffer ${id}: it was freed, or its device was lost`);
  }
}

function kernelsOf({ kernels, name }: OpenDevice): SingleKernels {
  return capability(kernels, name, 'kernels without a session');
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
