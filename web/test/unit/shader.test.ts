import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packUniforms, type ShaderRequest, shaderKey, shaderText, stableJson } from '../../src/providers/webgpu/shader';

const shader = {
  name: 'probe__any',
  wgsl: (spec: { [key: string]: unknown }) => `@compute fn main() { /* ${JSON.stringify(spec.n)} */ }`,
};
const base: ShaderRequest = {
  shader,
  spec: { n: 1, list: [1, 2] },
  bindings: [
    { name: 'x', type: 'vec4<f32>', writable: false },
    { name: 'y', type: 'f32', writable: true },
  ],
  uniforms: [{ name: 'count', type: 'u32' }],
};

test('shader: the order of a spec does not matter to the key, all else does', () => {
  const others: Partial<ShaderRequest>[] = [
    { spec: { n: 2, list: [1, 2] } },
    { spec: { n: 1, list: [2, 1] } },
    { bindings: [base.bindings[1], base.bindings[0]] },
    { bindings: [{ ...base.bindings[0], type: 'f32' }, base.bindings[1]] },
    { uniforms: [] },
    { uniforms: [{ name: 'count', type: 'f32' }] },
    { hoisted: true },
  ];
  assert.equal(shaderKey({ ...base, spec: { list: [1, 2], n: 1 } }), shaderKey(base));
  const keys = [base, ...others.map((other) => ({ ...base, ...other }))].map(shaderKey);
  assert.equal(new Set(keys).size, keys.length);
});

test('shader: stableJson forgets undefined members and sorts at every depth', () => {
  assert.equal(
    stableJson({ b: { d: 1, c: undefined, a: null }, a: [true, 'x'] }),
    '{"a":[true,"x"],"b":{"a":null,"d":1}}',
  );
});

test('shader: bindings are declared in order, the uniforms last', () => {
  const text = shaderText(base);
  assert.match(text, /@binding\(0\) var<storage, read> x: array<vec4<f32>>;/);
  assert.match(text, /@binding\(1\) var<storage, read_write> y: array<f32>;/);
  assert.match(text, /struct Uniforms \{ count: u32 \}\n@group\(0\) @binding\(2\) var<uniform> u: Uniforms;/);
});

test('shader: directives stay first, and f16 is enabled once', () => {
  const half = { ...base, bindings: [{ name: 'x', type: 'f16', writable: true }] };
  assert.match(shaderText(half), /^enable f16;\n/);
  const own = { ...half, shader: { name: 'own', wgsl: () => '\nenable f16; enable subgroups;\nfn main() {}' } };
  const text = shaderText(own);
  assert.match(text, /^enable f16; enable subgroups;\n@group/);
  assert.equal(text.match(/enable f16/g)!.length, 1);
});

test('shader: uniforms keep their order, arrays get numbered fields, integers must be integers', () => {
  const { fields, bytes } = packUniforms({ n: 7, shape: [2, 3], scale: 0.5, shift: -1 }, ['scale'], ['shift']);
  assert.deepEqual(
    fields.map(({ name, type }) => `${name}:${type}`),
    ['n:u32', 'shape_0:u32', 'shape_1:u32', 'scale:f32', 'shift:i32'],
  );
  const view = new DataView(bytes.buffer);
  assert.deepEqual(
    [view.getUint32(0, true), view.getUint32(8, true), view.getFloat32(12, true), view.getInt32(16, true)],
    [7, 3, 0.5, -1],
  );
  assert.throws(() => packUniforms({ n: 0.5 }), /needs an integer/);
});

test('shader: where uniforms are hoisted, main reads each once, and other functions as before', () => {
  const body = `fn twice(x: u32) -> u32 { return x * u.count; }
@compute fn main() { if (u.count > 1u) { y[0] = f32(u.count); } }
fn half() -> u32 { return u.count / 2u; }`;
  const text = shaderText({ ...base, hoisted: true, shader: { name: 'own', wgsl: () => body } });
  const main = `fn main() {
  let uniform_count = u.count; if (uniform_count > 1u) { y[0] = f32(uniform_count); } }
`;
  assert.ok(text.includes(main), text);
  assert.match(text, /return x \* u\.count;[\s\S]*return u\.count \/ 2u;/);
});
