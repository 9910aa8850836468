// Single buffers and kernels.
import { Attributes } from '../../contract/attributes';
import type { SingleKernel, SingleKernels } from '../../device/single';
import type { GpuProvider } from './provider';
import { findKernel } from './registry';
import { inErrorScopes } from './scopes';
import { prepareSingle } from './single';
import { userKernels } from './user_kernels';

export class GpuSingleKernels implements SingleKernels {
  constructor(private readonly provider: GpuProvider) {}

  make(op: string, domain: string, attributes: Uint8Array, userKernel: string): SingleKernel {
    const { provider } = this;
    const { gpu } = provider;
    const kernel = findKernel(op, domain, userKernels(userKernel && `[${userKernel}]`));
    const parsed = kernel.attributes?.(new Attributes(attributes));
    return (inputs, outputs) =>
      inErrorScopes(gpu, async () => {
        const wants = Array.from({ length: outputs }, () => true);
        const call = await prepareSingle(provider, kernel, parsed, inputs, wants);
        gpu.submit([call.segment.encode(gpu.device.createCommandEncoder()).finish()]);
        call.destroy();
        return call.outputs.map((output) => output!);
      });
  }
}
