// Profiles on devices without timestamps, and the times of passes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BufferCaches } from '../../src/providers/webgpu/buffer_cache';
import type { Gpu } from '../../src/providers/webgpu/device';
import { gpuTime } from '../../src/device/profile';
import { Profiler } from '../../src/providers/webgpu/profiler';

const ROW = { kernel: 'relu', workgroups: [1, 1, 1], instance: 7 } as const;

test('without timestamp-query the rows have no times, and there are none of passes', async () => {
  const gpu = {
    device: { features: new Set<string>(), createQuerySet: () => assert.fail('it has no queries') },
  } as unknown as Gpu;
  const profiler = new Profiler(gpu, {} as BufferCaches, 'dispatches');
  const passes: GPUComputePassDescriptor[] = [];
  const encoder = {
    beginComputePass: (descriptor: GPUComputePassDescriptor) => passes.push(descriptor),
  } as unknown as GPUCommandEncoder;
  profiler.beginPass(encoder, ROW);
  profiler.resolve(encoder);
  assert.deepEqual(await profiler.dispatches(), [ROW]);
  assert.deepEqual(passes, [{ label: 'relu' }]);
  assert.equal(gpuTime(await profiler.passes()), undefined);
});

test('passes are added up, and what lies between them is in their span', () => {
  const passes = [
    [1_000_000n, 1_500_000n],
    [1_600_000n, 2_000_000n],
    [5_000_000n, 5_250_000n],
  ] as const;
  assert.deepEqual(gpuTime(passes), { passes: 3, ms: 1.15, span_ms: 4.25 });
});
