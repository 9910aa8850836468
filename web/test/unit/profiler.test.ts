// Profiles on devices without timestamps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BufferCaches } from '../../src/gpu/buffer_cache';
import type { Gpu } from '../../src/gpu/device';
import { Profiler } from '../../src/gpu/profiler';

test('without timestamp-query the rows have no times', async () => {
  const gpu = {
    device: { features: new Set<string>(), createQuerySet: () => assert.fail('it has no queries') },
  } as unknown as Gpu;
  const profiler = new Profiler(gpu, {} as BufferCaches);
  const passes: GPUComputePassDescriptor[] = [];
  const encoder = {
    beginComputePass: (descriptor: GPUComputePassDescriptor) => passes.push(descriptor),
  } as unknown as GPUCommandEncoder;
  profiler.beginPass(encoder, { kernel: 'relu', workgroups: [1, 1, 1], instance: 7 });
  profiler.resolve(encoder);
  assert.deepEqual(await profiler.read(), [{ kernel: 'relu', workgroups: [1, 1, 1], instance: 7 }]);
  assert.deepEqual(passes, [{ label: 'relu' }]);
});
