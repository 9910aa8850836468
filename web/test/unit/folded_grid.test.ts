import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldedText, foldGrid } from '../../src/providers/webgpu/folded_grid';
import { linearMain } from '../../src/providers/webgpu/wgsl/linear';

const shader = { name: 'probe', wgsl: () => linearMain('  y[i] = 1;') };

test('folded grid: what fits stays as it is', () => {
  assert.deepEqual(foldGrid(shader, { count: 1 }, [7, 2, 3], 7), {
    shader,
    uniforms: { count: 1 },
    workgroups: [7, 2, 3],
  });
});

test('folded grid: the rectangle holds every workgroup, under a name of its own', () => {
  const { shader: folded, uniforms, workgroups } = foldGrid(shader, { count: 1 }, [3, 100000, 2], 65535);
  assert.ok(workgroups[0] * workgroups[1] >= 600000 && workgroups.every((count) => count <= 65535));
  assert.deepEqual(uniforms, { count: 1, grid: [3, 100000, 2] });
  assert.equal(folded.name, 'probe_folded');
});

test('folded grid: every builtin is that of the grid', () => {
  const text = foldedText(`@compute @workgroup_size(8, 4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_index) lane: u32) { y[id.x] = group.y; }`);
  const kept =
    'fn main(@builtin(local_invocation_index) lane: u32, @builtin(local_invocation_id) folded_local: vec3<u32>';
  assert.ok(text.includes(`${kept}, @builtin(workgroup_id) folded_group`), text);
  assert.match(text, /let group = grid_group;/);
  assert.match(text, /let id = grid_group \* vec3<u32>\(8, 4, 1\) \+ folded_local;/);
  assert.throws(() => foldedText('fn main() {}'), /without/);
});
