// Flash attention's tiles on GPUs: the contents of a workgroup's memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context, Dispatch, Tensor } from '../../src/contract/kernel';
import { flashAttention } from '../../src/providers/webgpu/kernels/attention/flash_attention';
import { headsOf } from '../../src/providers/webgpu/kernels/attention/spec';
import { DType } from '../../src/schema';

const KIB = 1024;

/** WGSL of the tiles for 40 keys and heads of these sizes; undefined if there are none. */
function text(size: number, valueSize: number, rows: number, storage: number, lengths: boolean): string | undefined {
  const [batch, heads, keys] = [8, 32, 40];
  let ids = 0;
  const tensor = (dims: number[], dtype = DType.float32): Tensor => ({
    id: ++ids,
    dtype,
    dims,
    size: dims.reduce((product, dim) => product * dim, 1),
    storage: dtype === DType.float32 ? 'f32' : 'i32',
    location: 'gpu',
  });
  const found: Dispatch[] = [];
  const device = {
    maxWorkgroupStorage: storage,
    maxStorageBindingSize: 2 ** 30,
    maxWorkgroupsPerDimension: 65535,
    maxStorageBuffersPerStage: 8,
  };
  const ctx = { device, dispatch: (one: Dispatch) => found.push(one), temp: tensor } as unknown as Context;
  const masking = { masks: [], causal: false, left: -1, right: -1, past: 0, softcap: 0 };
  flashAttention(ctx, {
    ...{ batch, heads, kvHeads: heads, queries: rows, keys, size, valueSize, scale: 1 },
    q: headsOf(tensor([batch, heads, rows, size])),
    k: headsOf(tensor([batch, heads, keys, size])),
    v: headsOf(tensor([batch, heads, keys, valueSize])),
    y: headsOf(tensor([batch, heads, rows, valueSize])),
    masking: lengths ? { ...masking, lengths: tensor([batch], DType.int32), more: 0 } : masking,
  });
  const [tiles] = found;
  return tiles?.shader.wgsl(tiles.spec!);
}

/** Bytes, each variable rounded up like in WebGPU. */
function workgroupBytes(wgsl: string): number {
  const lanes = /alias V = vec4/.test(wgsl) ? 4 : 1;
  const arrays = [...wgsl.matchAll(/var<workgroup> \w+: array<(V|f32), (\d+)>/g)];
  const bytes = arrays.map(([, type, count]) => 4 * (type === 'V' ? lanes : 1) * Number(count));
  if (wgsl.includes('var<workgroup> span')) bytes.push(8);
  return bytes.reduce((sum, each) => sum + Math.ceil(each / 16) * 16, 0);
}

test('flash attention: its tiles have memory enough', () => {
  let count = 0;
  for (const kib of [16, 32, 48])
    for (const rows of [5, 16, 32, 77])
      for (const lengths of [false, true])
        for (const size of [1, 29, 44, 45, 64, 72, 80, 128, 256])
          for (const valueSize of [1, 48, 49, 64, 72, 128]) {
            const wgsl = text(size, valueSize, rows, kib * KIB, lengths);
            if (!wgsl) continue;
            count++;
            assert.ok(workgroupBytes(wgsl) <= kib * KIB, `${size}, ${valueSize}, ${rows} rows, ${kib} KiB, ${lengths}`);
          }
  assert.ok(count > 500, String(count));
});

test('flash attention: many full blocks have 32 rows, of which a thread has two', () => {
  const rowsOfThread = (rows: number) => text(64, 64, rows, 48 * KIB, false)!.match(/let own\d/g)!.length;
  assert.deepEqual([16, 32, 64, 77].map(rowsOfThread), [1, 2, 2, 1]);
});
