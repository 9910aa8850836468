import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bound, inWindows } from '../../src/providers/webgpu/windows';

const shader = { name: 'probe', wgsl: () => 'fn main() { y[i] = x[i] + w[i]; }' };

function bound(name: string, id: number, bytes: number, writable = false): Bound {
  return {
    name,
    type: 'vec4<f32>',
    writable,
    region: { id, offset: 512, bytes },
    elementBytes: 16,
    described: `float32[${bytes / 4}]`,
  };
}

const limits = (maxStorageBuffersPerStage: number) => ({ maxStorageBindingSize: 1030, maxStorageBuffersPerStage });
const small = bound('w', 3, 64);

test('windows: all at once where there are bindings for them', () => {
  const [pass, ...more] = inWindows(
    shader,
    {},
    [bound('x', 1, 2400), small, bound('y', 2, 1040, true)],
    1,
    { count: 7 },
    limits(6),
  );
  assert.equal(more.length, 0);
  assert.deepEqual(
    pass.bindings.map(({ name }) => name),
    ['x_from_0_to_64', 'x_from_64_to_128', 'x_from_128_to_192', 'w', 'y_from_0_to_64', 'y_from_64_to_128'],
  );
  assert.deepEqual(
    pass.regions.map(({ id, offset, bytes }) => [id, offset, bytes]),
    [
      [1, 512, 1024],
      [1, 1536, 1024],
      [1, 2560, 352],
      [3, 512, 64],
      [2, 512, 1024],
      [2, 1536, 16],
    ],
  );
  assert.deepEqual([pass.written, pass.uniforms], [2, { count: 7 }]);
  const text = pass.shader.wgsl({});
  const first = 'select(x_from_0_to_64[at], x_from_64_to_128[at - 64u], at >= 64u)';
  assert.ok(text.includes(`select(${first}, x_from_128_to_192[at - 128u], at >= 128u)`), text);
});

test('windows: outputs in passes, each of which keeps what is its own', () => {
  const passes = inWindows(shader, {}, [bound('x', 1, 64), small, bound('y', 2, 3000, true)], 1, {}, limits(4));
  assert.deepEqual(
    passes.map(({ uniforms }) => uniforms),
    [{ y_part_begins: 0 }, { y_part_begins: 128 }],
  );
  assert.deepEqual(
    passes.map(({ regions }) => regions.map(({ offset }) => offset)),
    [
      [512, 512, 512, 1536],
      [512, 512, 2560],
    ],
  );
  assert.match(
    passes[1].shader.wgsl({}),
    /let at = i - u.y_part_begins; if \(at < 64u\) \{ y_part_0_to_64\[at\] = value; \} \}/,
  );
});

test('windows: what is bound twice has its windows once, under another name of the shader', () => {
  const [pass] = inWindows(
    shader,
    {},
    [bound('x', 1, 2048), bound('w', 1, 2048), bound('y', 2, 64, true)],
    1,
    {},
    limits(3),
  );
  assert.deepEqual(
    pass.bindings.map(({ name }) => name),
    ['x_from_0_to_64', 'x_from_64_to_128', 'y'],
  );
  assert.equal(pass.shader.name, 'probe_windows_w_in_x');
  assert.match(pass.shader.wgsl({}), /fn read_w\(i: u32\) -> vec4<f32> \{ let at = i; return select\(x_from_0_to_64/);
});

test('windows: refused is what takes too many bindings, and passes over what is read again', () => {
  const message =
    /probe: float32\[1000\] is beyond the 1030 bytes .*; in parts there are 6 bindings, of which it allows 4/;
  assert.throws(
    () => inWindows(shader, {}, [bound('x', 1, 4000), small, bound('y', 2, 64, true)], 1, {}, limits(4)),
    message,
  );
  const reading = { name: 'probe', wgsl: () => 'fn main() { y[i] = y[i - 1]; }' };
  assert.throws(
    () => inWindows(reading, {}, [bound('y', 2, 8192, true)], 1, {}, limits(4)),
    /in parts there are 8 bindings/,
  );
});
