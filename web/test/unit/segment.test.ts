import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BufferCache } from '../../src/gpu/buffer_cache';
import type { Gpu } from '../../src/gpu/device';
import { type Command, compileSegment } from '../../src/gpu/segment';

test('bytes go from a buffer to itself through another one', async () => {
  const [one, other] = [{}, {}] as GPUBuffer[];
  const made: GPUBufferDescriptor[] = [];
  const createBuffer = (descriptor: GPUBufferDescriptor) => {
    made.push(descriptor);
    return { destroy() {} };
  };
  const gpu = { createBuffer } as unknown as Gpu;
  const copy = (target: number, bytes: number): Command => ({
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
