import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cuts, emptyLayout, layOut, rows, type Edge } from '../../src/report/layout';

/** A long network of layers with residual connections, and one input that every layer reads. */
function network(layers: number): [count: number, edges: Edge[]] {
  const edges: Edge[] = [];
  let last = 1;
  for (let i = 0, next = 2; i < layers; i++, next += 4) {
    edges.push(
      [last, next],
      [last, next + 1],
      [next, next + 2],
      [next + 1, next + 2],
      [next + 2, next + 3],
      [last, next + 3],
      [0, next + 2],
    );
    last = next + 3;
  }
  return [2 + 4 * layers, edges];
}

function laidOut(count: number, edges: readonly Edge[]) {
  const layout = emptyLayout(count, edges.length);
  const sizes = Array.from({ length: count }, (_, i) => ({ width: 60 + 20 * (i % 3), height: 40 }));
  const pieces = [...layOut(sizes, edges, layout)].length;
  return { layout, sizes, pieces };
}

test('rows are below what is read', () => {
  assert.deepEqual(
    rows(5, [
      [0, 1],
      [1, 2],
      [0, 2],
      [3, 2],
    ]),
    [0, 1, 2, 1, 0],
  );
});

test('pieces begin where few values cross', () => {
  const [count, edges] = network(100);
  const row = rows(count, edges);
  const near = edges.filter(([from, to]) => row[to]! - row[from]! <= 30);
  const found = cuts(row, near);
  assert.ok(found.length > 5 && found.length < 40, String(found.length));
  for (const cut of found.slice(3)) {
    const crossing = new Set(near.filter(([from, to]) => row[from]! < cut && row[to]! >= cut).map(([from]) => from));
    assert.ok(crossing.size <= 1, `${crossing.size} values cross ${cut}`);
  }
});

test('two thousand nodes: none overlap, edges go down, only far ones are left out', () => {
  const [count, edges] = network(500);
  const { layout, sizes, pieces } = laidOut(count, edges);
  assert.ok(pieces > 20);
  const row = rows(count, edges);
  const boxes = layout.at.map((at, i) => ({ ...at!, ...sizes[i]! })).sort((a, b) => a.y - b.y);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j]!.y - a.y < a.height; j++) {
      assert.ok(Math.abs(a.x - boxes[j]!.x) >= (a.width + boxes[j]!.width) / 2, `${i} and ${j} overlap`);
    }
  });
  edges.forEach(([from, to], i) => {
    const path = layout.paths[i],
      far = row[to]! - row[from]! > 30;
    if (far) assert.equal(path, undefined);
    if (!path) assert.ok(row[to]! - row[from]! > 5, 'a near edge was left out');
    if (!path) return;
    assert.ok(path[0]!.y < path.at(-1)!.y);
    assert.deepEqual([path[0]!.x, path.at(-1)!.x], [layout.at[from]!.x, layout.at[to]!.x]);
  });
});

test('graphs of odd forms', () => {
  for (const [count, edges] of [
    [0, []],
    [1, []],
    [300, []],
    [300, Array.from({ length: 299 }, (_, i) => [0, i + 1])],
    [300, Array.from({ length: 299 }, (_, i) => [i, 299])],
  ] as [number, Edge[]][]) {
    const { layout } = laidOut(count, edges);
    assert.ok(layout.at.every((at) => at && Number.isFinite(at.x) && Number.isFinite(at.y)));
  }
});
