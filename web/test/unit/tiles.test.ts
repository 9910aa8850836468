// The tiles that GPUs use for products, and the effect of a table of tiles.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hardwareTile } from '../../src/providers/webgpu/kernels/matmul/product/hardware_tile';
import type { Context, Dispatch, Tensor, TileTable } from '../../src/contract/kernel';
import { matrixTile, matrixTileName } from '../../src/providers/webgpu/kernels/matmul/product/matrix_tiles';
import { multiply } from '../../src/providers/webgpu/kernels/matmul/product/multiply';
import type { Product } from '../../src/providers/webgpu/kernels/matmul/product/product';
import { DType } from '../../src/schema';
import {
  softwareTile,
  softwareTileName,
  softwareTiles,
} from '../../src/providers/webgpu/kernels/matmul/product/software_tile';
import {
  choiceName,
  choices,
  type Problem,
  productKey,
  workgroupQuads,
} from '../../src/providers/webgpu/kernels/matmul/product/tiles';

const KIB = 1024;

function problem(m: number, n: number, k: number, rest: Partial<Problem> = {}): Problem {
  return { left: 'matrix', m, n, k, z: 1, aVec: 4, bVec: 4, transposed: false, ...rest };
}

function chosen(given: Problem, kib = 48, tiles?: { [product: string]: string }): string {
  return choiceName(hardwareTile(given, { maxWorkgroupStorage: kib * KIB, tiles }));
}

test('tiles: large products take large tiles', () => {
  assert.equal(chosen(problem(4096, 4096, 4096)), '128x64x32_8x8');
  assert.equal(chosen(problem(1024, 1024, 1024)), '64x64x32_4x8');
  assert.equal(chosen(problem(3136, 256, 64)), '32x64x32', 'too shallow for them');
  assert.equal(chosen(problem(12544, 64, 147, { left: 'windows', aVec: 1 })), '32x64x32');
});

test('tiles: few workgroups have many slices, as far as there is memory', () => {
  const few = problem(196, 256, 2304, { left: 'windows' });
  assert.deepEqual(
    [48, 32, 16].map((kib) => chosen(few, kib)),
    ['16x32x32_slices_8', '16x32x16_ahead_slices_8', '32x32x16_slices_4'],
  );
  assert.equal(chosen(problem(784, 128, 512)), '16x32x16_slices_8');
});

test('tiles: the more workgroups there are, the fewer slices', () => {
  assert.equal(chosen(problem(196, 1024, 256)), '16x32x16_slices_4');
  assert.equal(chosen(problem(128, 3072, 768)), '32x32x16_slices_4');
  assert.equal(chosen(problem(784, 512, 128)), '32x64x32_slices_2');
  assert.equal(chosen(problem(8192, 32, 128)), '32x32x16_slices_4', 'half of the wide columns would be wasted');
});

test('tiles: no slices are idle', () => {
  assert.equal(chosen(problem(1600, 64, 64)), '32x32x32');
  assert.equal(chosen(problem(128, 128, 64, { z: 12 })), '16x32x16_slices_4');
  assert.equal(chosen(problem(128, 128, 60, { z: 12 })), '32x64x32_slices_2');
});

test('tiles: what is chosen has memory enough', () => {
  for (const kib of [16, 32, 48])
    for (const m of [16, 100, 500, 4096])
      for (const k of [32, 300, 5000])
        for (const aVec of [1, 4] as const) {
          const { a, b } = workgroupQuads(
            hardwareTile(problem(m, 512, k, { aVec }), { maxWorkgroupStorage: kib * KIB }).tile,
          );
          assert.ok(16 * (a + b) <= kib * KIB, `${m} rows, depth ${k}, ${kib} KiB`);
        }
});

test('tiles: workgroups share k where it is very deep and they are few', () => {
  assert.equal(chosen(problem(49, 512, 4608)), '32x64x32_slices_2_parts_8');
  assert.equal(chosen(problem(49, 512, 2048)), '32x64x32_slices_2_parts_8');
  assert.equal(chosen(problem(49, 512, 1024)), '16x32x32_slices_8');
  assert.equal(chosen(problem(49, 512, 4608), 16), '32x32x16_slices_4', 'no memory for larger ones');
  assert.equal(chosen(problem(49, 1024, 4608)), '32x32x16_slices_4_parts_4');
  assert.equal(chosen(problem(128, 768, 3072)), '32x32x16_slices_4_parts_4');
});

test('tiles: b is read directly only where its rows are of k, and lie in order', () => {
  const direct = (rest: Partial<Problem>) =>
    choices(problem(128, 768, 768, rest), { maxWorkgroupStorage: 48 * KIB }).some(({ tile }) => tile.directB);
  assert.ok(direct({}));
  assert.ok(!direct({ transposed: true }));
  assert.ok(!direct({ left: 'phases' }));
});

test('tiles: all choices have names of their own and memory enough, for the sums of slices too', () => {
  for (const kib of [16, 32, 48]) {
    const found = choices(problem(100, 100, 1000), { maxWorkgroupStorage: kib * KIB });
    assert.ok(found.length >= 5);
    assert.equal(new Set(found.map(choiceName)).size, found.length);
    for (const { tile } of found) {
      const { a, b } = workgroupQuads(tile);
      assert.ok(16 * (a + b) <= kib * KIB);
      if (tile.slices > 1) assert.ok(a + b >= (tile.slices * tile.tileRows * tile.tileColumns) / 4);
      assert.equal((tile.tileDepth / 4) % tile.unrolled, 0);
      assert.ok(tile.rows % tile.slices === 0 || tile.slices % tile.rows === 0);
    }
  }
  assert.ok(!choices(problem(9, 9, 9), { maxWorkgroupStorage: 48 * KIB }).some(({ parts }) => parts > 1));
});

test('tiles: a table goes before the model, where its tile is possible', () => {
  const given = problem(128, 768, 768);
  const tiles = { [productKey(given)]: '32x64x32', '*': '16x32x16_slices_8' };
  assert.equal(chosen(given, 48, tiles), '32x64x32');
  assert.equal(chosen(problem(128, 768, 764), 48, tiles), '16x32x16_slices_8');
  assert.equal(chosen(given, 48, { '*': 'unheard of' }), chosen(given));
  assert.equal(chosen(given, 32, { '*': '16x32x32_slices_8' }), chosen(given, 32), 'too large here');
});

test('tiles: software adapters take the tile that a table names, if there is such a one', () => {
  const [size, device] = [{ m: 64, n: 64 }, { subgroups: true }];
  const usual = softwareTile(size, false, device);
  assert.equal(softwareTileName(usual), '8x16_rows');
  const { rows, columns, along, threads } = softwareTile(size, false, device, '4x4_columns');
  assert.deepEqual([rows, columns, along, threads], [4, 1, 'columns', 16 * 16]);
  assert.deepEqual(softwareTile(size, true, device, '4x16_columns'), softwareTile(size, true, device));
  for (const compact of [false, true]) {
    const names = softwareTiles(compact).map(softwareTileName);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.equal(softwareTileName(softwareTile(size, compact, device, name)), name);
  }
});

test('tiles: both launches of a product say which it took of a table, and what else it could', () => {
  const [m, n, k] = [49, 512, 4608];
  const tensor = (id: number, dims: number[]): Tensor => ({
    id,
    dtype: DType.float32,
    dims,
    size: dims[0] * dims[1],
    storage: 'f32',
    location: 'gpu',
  });
  const given: Product = {
    left: 'matrix',
    a: tensor(1, [m, k]),
    b: tensor(2, [k, n]),
    y: tensor(3, [m, n]),
    ...{ m, n, depth: k, taps: 1, z: 1, lda: k, ldb: n, ldy: n },
  };
  const launches = (tiles?: TileTable): Dispatch[] => {
    const found: Dispatch[] = [];
    const device = { maxWorkgroupStorage: 48 * KIB, maxStorageBindingSize: 2 ** 30, maxWorkgroupsPerDimension: 65535 };
    const dispatch = (one: Dispatch) => found.push(one);
    multiply({ device: { ...device, tiles }, dispatch, temp: () => tensor(4, [m, n]) } as unknown as Context, given);
    return found;
  };
  assert.ok(launches().every(({ tiling }) => tiling === undefined));
  const product = productKey(problem(m, n, k));
  const tile = '32x32x16_two_slices_4_parts_3';
  const found = launches({ [product]: tile });
  assert.equal(found.length, 2);
  for (const { tiling } of found) {
    assert.deepEqual([tiling?.product, tiling?.tile], [product, tile]);
    const all = tiling!.choices();
    assert.ok(all.includes(tile) && all.includes(chosen(problem(m, n, k))));
  }
  const [{ shader }] = launches({ [product]: '16x32x16_slices_8' });
  assert.equal(shader.name, 'gemm__hw_16x32x16_slices_8');
});

test('tiles: matrices of halves have many slices where workgroups are few', () => {
  const subgroupMatrix = { m: 16, n: 16, k: 16, subgroup: 32 };
  const named = (given: Problem, kib = 48, tiles?: TileTable) => {
    const found = matrixTile({ ...given, halves: true }, { subgroupMatrix, maxWorkgroupStorage: kib * KIB, tiles });
    return found && matrixTileName(found);
  };
  assert.equal(named(problem(512, 8192, 2048)), 'matrices_128x128x32');
  assert.equal(named(problem(512, 2048, 2048)), 'matrices_64x64x32');
  assert.equal(named(problem(128, 3072, 768)), 'matrices_64x64x64_slices_2');
  assert.equal(named(problem(784, 512, 256, { left: 'windows' })), 'matrices_64x64x32_slices_2');
  assert.equal(named(problem(128, 2048, 2048)), 'matrices_32x64x32_slices_4');
  assert.equal(named(problem(128, 768, 3072)), 'matrices_64x64x32_slices_2_parts_4');
  assert.equal(named(problem(784, 128, 512)), 'matrices_32x32x32_slices_4');
  assert.equal(named(problem(196, 256, 1024)), 'matrices_32x32x32_slices_8');
  assert.equal(named(problem(49, 512, 2048)), 'matrices_32x32x32_slices_8_parts_4');
  assert.equal(named(problem(49, 512, 1024)), 'matrices_32x32x32_slices_8');
  assert.equal(named(problem(49, 512, 2304, { left: 'windows' })), 'matrices_32x32x32_slices_8_parts_4');
  assert.equal(named(problem(49, 512, 1152, { left: 'windows' })), undefined);
  assert.equal(named(problem(49, 256, 2048)), undefined);
  assert.equal(named(problem(12544, 64, 147, { left: 'windows', aVec: 1 })), undefined, 'by element');
  assert.equal(named(problem(3136, 64, 40)), 'matrices_64x64x32');
  assert.equal(named(problem(128, 3072, 768), 16), 'matrices_64x64x32');
  assert.equal(named(problem(128, 768, 768), 48, { '*': 'matrices_64x64x32' }), 'matrices_64x64x32');
  assert.equal(named(problem(128, 768, 768), 48, { '*': '32x32x32' }), undefined);
  assert.equal(matrixTile(problem(512, 8192, 2048), { subgroupMatrix, maxWorkgroupStorage: 48 * KIB }), undefined);
});
