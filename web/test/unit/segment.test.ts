import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BufferCache, BufferCaches } from '../../src/providers/webgpu/buffer_cache';
import type { Gpu } from '../../src/providers/webgpu/device';
import { Profiler } from '../../src/providers/webgpu/profiler';
import { compileSegment, type GpuCommand } from '../../src/providers/webgpu/segment';
import type { Timed } from '../../src/timeline';

test('bytes go from a buffer to itself through another one', async () => {
  const [one, other] = [{}, {}] as GPUBuffer[];
  const made: GPUBufferDescriptor[] = [];
  const createBuffer = (descriptor: GPUBufferDescriptor) => {
    made.push(descriptor);
    return { destroy() {} };
  };
  const gpu = { createBuffer, traits: { software: true } } as unknown as Gpu;
  const copy = (target: number, bytes: number): GpuCommand => ({
    kind: 'copy',
    source: { id: 0, bytes },
    target: { id: target, bytes },
  });
  const places = [
    { buffer: one, offset: 0 },
    { buffer: one, offset: 512 },
    { buffer: other, offset: 0 },
  ];
  const segment = await compileSegment(
    gpu,
    {} as BufferCache,
    [copy(1, 64), copy(2, 400), copy(1, 128)],
    (id) => places[id],
  );
  const copied: unknown[][] = [];
  segment.encode({ copyBufferToBuffer: (...all: unknown[]) => copied.push(all) } as unknown as GPUCommandEncoder);
  assert.deepEqual(
    made.map(({ size }) => size),
    [128],
  );
  assert.ok(copied.every(([source, , target]) => source !== target));
  assert.deepEqual(
    copied.map(([, from, , to, bytes]) => [from, to, bytes]),
    [
      [0, 0, 64],
      [0, 512, 64],
      [0, 0, 400],
      [0, 0, 128],
      [0, 512, 128],
    ],
  );
});

interface Circumstances {
  readonly software?: boolean;
  readonly awaited?: number;
  readonly timed?: Timed;
}

/** Returns the number of dispatches in each command buffer, the last of which is not submitted yet, and of passes. */
async function encoded(count: number, { software = false, awaited = 0, timed }: Circumstances) {
  const buffers: number[] = [];
  const created: number[] = [];
  let passes = 0;
  const createCommandEncoder = () => {
    const index = created.push(0) - 1;
    const pass = {
      setPipeline() {},
      setBindGroup() {},
      dispatchWorkgroups: () => created[index]++,
      end() {},
    };
    const beginComputePass = () => {
      passes++;
      return pass;
    };
    return { beginComputePass, finish: () => index };
  };
  const gpu = {
    traits: { software },
    awaited,
    counters: { bind_groups: 0, dispatches: 0 },
    device: { createBindGroup: () => ({}), createCommandEncoder, features: new Set() },
    submit: ([index]: number[]) => buffers.push(created[index]),
  } as unknown as Gpu;
  const dispatch = {
    kind: 'dispatch',
    program: { ready: {}, label: 'one', compile: () => Promise.resolve() },
    bindings: [],
    written: 0,
    uniforms: undefined,
    workgroups: [1, 1, 1],
  } as unknown as GpuCommand;
  const commands = Array.from({ length: count }, () => dispatch);
  const segment = await compileSegment(gpu, {} as BufferCache, commands, () => ({}) as never);
  const profiler = timed && new Profiler(gpu, {} as BufferCaches, timed);
  const last = segment.encode(gpu.device.createCommandEncoder(), profiler) as unknown as { finish(): number };
  assert.equal(gpu.counters.dispatches, count);
  return { buffers: [...buffers, created[last.finish()]], passes };
}

test('a GPU that is idle begins before all is encoded', async () => {
  assert.deepEqual(await encoded(32, {}), { buffers: [32], passes: 1 });
  assert.deepEqual(await encoded(80, {}), { buffers: [32, 32, 16], passes: 3 });
});

test('a GPU that has work, or is a processor, gets all at once', async () => {
  assert.deepEqual(await encoded(80, { awaited: 1 }), { buffers: [80], passes: 1 });
  assert.deepEqual(await encoded(80, { software: true }), { buffers: [80], passes: 1 });
});

test('passes are timed as they are without a profile, dispatches each in its own', async () => {
  for (const more of [{}, { awaited: 1 }])
    assert.deepEqual(await encoded(80, { ...more, timed: 'passes' }), await encoded(80, more));
  assert.deepEqual(await encoded(80, { timed: 'dispatches' }), { buffers: [80], passes: 80 });
});
