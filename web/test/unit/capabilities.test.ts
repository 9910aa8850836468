import assert from 'node:assert/strict';
import test from 'node:test';
import { ErrorCode } from '../../src/schema';
import { KernelService } from '../../src/page/kernel_service';
import type { Runtime } from '../../src/session/runtime';

/** A page's view of a provider's devices. */
function pageOf(device: object): { runtime: Runtime; entered: () => number } {
  let entered = 0;
  const enter = async () => {
    entered++;
    return device;
  };
  const devices = { open: async () => device, enter };
  const runtime = { devices: () => devices, leave: () => entered-- };
  return { runtime: runtime as unknown as Runtime, entered: () => entered };
}

const REFUSED = {
  code: ErrorCode.not_implemented,
  message: 'provider "plain" has no kernels without a session',
  place: { provider: 'plain' },
};

test('a device without kernels of their own is named, and left', async () => {
  const { runtime, entered } = pageOf({ name: 'plain' });
  const service = new KernelService(runtime);
  await assert.rejects(service.createKernel('plain', 0, 'Relu', '', new Uint8Array()), REFUSED);
  assert.equal(entered(), 0);
});

test('a device that has them is kept until the kernel is released', async () => {
  const kernels = { make: () => async () => [] };
  const { runtime, entered } = pageOf({ name: 'full', kernels });
  const service = new KernelService(runtime);
  const id = await service.createKernel('plain', 0, 'Relu', '', new Uint8Array());
  assert.equal(entered(), 1);
  service.releaseKernel(id);
  assert.equal(entered(), 0);
});
