// The kernels of this build: its own, and those of webgpu that write an element a thread.
import { kernels as others, sources } from 'virtual:kernels';
import { kernels as own } from 'virtual:kernels/webgl/kernels';
import type { Feature, Kernel } from '../../contract/kernel';
import { RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { NAME } from './context';
import { bringOwnElementProduct } from '../webgpu/kernels/matmul/product/own_element';
import { multiplyFragments } from './kernels/product';
import { SHARED } from './shared';

bringOwnElementProduct(multiplyFragments);

/** Features of kernels that work in an element a thread. */
const FEATURES: ReadonlySet<Feature> = new Set(['bias', 'epilogue', 'residual', 'steps'] as const);
const all = new Map<string, readonly [kernel: Kernel, source: string]>();
const keyOf = (op: string, domain = '') => `${domain}:${op}`;

others.forEach((kernel, i) => {
  const source = sources[i];
  const requires = SHARED[source] ?? SHARED[`${source} ${keyOf(kernel.op, kernel.domain)}`];
  if (!requires) return;
  const features = kernel.features?.filter((feature) => FEATURES.has(feature));
  all.set(keyOf(kernel.op, kernel.domain), [
    { ...kernel, features, requires: [...(kernel.requires ?? []), ...requires] },
    source,
  ]);
});
for (const kernel of own as readonly Kernel[]) all.set(keyOf(kernel.op, kernel.domain), [kernel, 'webgl']);

/** For Python: each with its file. */
export const registered = [...all.values()];

export function findKernel(op: string, domain = ''): Kernel {
  const found = all.get(keyOf(op, domain === 'ai.onnx' ? '' : domain));
  if (found) return found[0];
  throw new RuntimeError(ErrorCode.not_implemented, `there is no WebGL kernel for ${domain}::${op}`, {
    opType: op,
    provider: NAME,
  });
}
