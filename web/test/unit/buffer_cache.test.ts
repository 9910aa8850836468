import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BufferCache, bucketBytes, type CacheMode } from '../../src/providers/webgpu/buffer_cache';
import type { Gpu } from '../../src/providers/webgpu/device';

interface FakeBuffer {
  size: number;
  alive: boolean;
  destroy(): void;
}

/** The members of a device that a cache uses. */
function fakeGpu(maxBufferSize = 1 << 30): Gpu {
  const createBuffer = ({ size }: { size: number }): FakeBuffer => ({
    size,
    alive: true,
    destroy() {
      this.alive = false;
    },
  });
  return { createBuffer, device: { limits: { maxBufferSize } } } as unknown as Gpu;
}

const cacheOf = (mode: CacheMode, max?: number) => new BufferCache(fakeGpu(max), 'storage', mode);
const isAlive = (buffer: GPUBuffer) => (buffer as unknown as FakeBuffer).alive;

test('buffer cache: buckets hold what is asked for and waste a fifth at most', () => {
  for (let bytes = 257; bytes < 1 << 24; bytes = Math.ceil(bytes * 1.07)) {
    const bucket = bucketBytes(bytes);
    assert.ok(bucket >= bytes && bucket % 16 === 0, `${bytes} in ${bucket}`);
    assert.ok((bucket - bytes) / bucket <= 0.2, `${bytes} in ${bucket}`);
    assert.equal(bucketBytes(bucket), bucket);
  }
  assert.equal(bucketBytes(1), 256);
});

test('buffer cache: what each mode does with a released buffer', () => {
  const expected: Record<CacheMode, [kept: boolean, same: boolean, near: boolean]> = {
    disabled: [false, false, false],
    lazyRelease: [true, false, false],
    simple: [true, true, false],
    bucket: [true, true, true],
  };
  for (const [mode, [kept, same, near]] of Object.entries(expected)) {
    for (const [bytes, found] of [
      [1000, same],
      [1010, near],
    ] as const) {
      const cache = cacheOf(mode as CacheMode);
      const first = cache.acquire(1000, 'a');
      cache.release(first);
      assert.equal(isAlive(first), kept, mode);
      assert.equal(cache.stats.buffers, Number(kept), mode);
      assert.equal(cache.acquire(bytes, 'b') === first, found, `${mode} ${bytes}`);
      assert.deepEqual([cache.stats.hits, cache.stats.misses], found ? [1, 1] : [0, 2], mode);
    }
  }
});

test('buffer cache: the end of a run frees what is to be freed lazily, clear all', () => {
  for (const mode of ['lazyRelease', 'bucket'] as const) {
    const cache = cacheOf(mode);
    const buffer = cache.acquire(5000, 'a');
    cache.release(buffer);
    cache.endOfRun();
    assert.equal(isAlive(buffer), mode === 'bucket');
    cache.clear();
    assert.equal(isAlive(buffer), false);
    assert.deepEqual([cache.stats.buffers, cache.stats.bytes], [0, 0]);
  }
});

test('buffer cache: without users nothing is kept', () => {
  const cache = cacheOf('simple');
  const buffer = cache.acquire(64, 'a');
  cache.open = false;
  cache.release(buffer);
  assert.equal(isAlive(buffer), false);
});

test('buffer cache: what has waited longest goes first when there is too much', () => {
  const cache = cacheOf('simple');
  const buffers = [200, 190, 180].map((mib) => cache.acquire(mib << 20, 'a'));
  for (const buffer of buffers) cache.release(buffer);
  assert.deepEqual(buffers.map(isAlive), [false, true, true]);
  assert.equal(cache.stats.bytes, 370 << 20);
});

test('buffer cache: a bucket is never beyond the device', () => {
  assert.equal(cacheOf('bucket', 1104).acquire(1090, 'a').size, 1104);
});
