// The kernels of this build, by domain and operator.
import { isMinimal, kernels } from 'virtual:kernels';
import { ErrorCode } from '../../schema';
import { RuntimeError } from '../../errors';
import type { Kernel } from '../../contract/kernel';

const registry = new Map<string, Kernel>();
for (const kernel of kernels) {
  const key = `${kernel.domain ?? ''}:${kernel.op}`;
  if (registry.has(key)) throw new Error(`two kernels for ${key}`);
  registry.set(key, kernel);
}

/** `own`: a user's kernels, which take precedence. */
export function findKernel(op: string, domain = '', own?: ReadonlyMap<string, Kernel>): Kernel {
  const name = domain === 'ai.onnx' ? '' : domain;
  const kernel = own?.get(`${name}:${op}`) ?? registry.get(`${name}:${op}`);
  if (!kernel) {
    const advice = isMinimal
      ? ' in this runtime, which has those of the models that it was exported with: export this model into their ' +
        'folder, or without --runtime minimal'
      : '';
    const message = `there is no WebGPU kernel for ${name ? `${name}.` : ''}${op}${advice}`;
    throw new RuntimeError(ErrorCode.not_implemented, message, { opType: op, provider: 'webgpu' });
  }
  return kernel;
}
