import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withPacked } from '../../src/providers/webgpu/packed';
import { type ShaderRequest, shaderKey, shaderText } from '../../src/providers/webgpu/shader';
import { KernelError, type Packing } from '../../src/contract/kernel';

const BODY = 'fn main() { let at = i32(1); y[i] = x[at] + x[0]; }';
const request = (packing?: Packing, lanes: 1 | 2 | 4 = 1): ShaderRequest => ({
  shader: { name: 'probe', wgsl: () => BODY },
  spec: {},
  uniforms: [],
  bindings: ['x', 'y'].map((name) => ({
    name,
    type: 'f32',
    packed: packing && { packing, lanes },
    writable: name === 'y',
  })),
});

test('packed: nothing of it is in the key or the text of other shaders', () => {
  assert.equal(shaderKey(request()), 'probe {} (x:f32,y:f32!) {}');
  assert.ok(shaderText(request()).endsWith(`${BODY}\n`));
});

test('packed: keys tell how elements lie', () => {
  assert.equal(shaderKey(request('f16')), 'probe {} (x:f32~f16,y:f32~f16!) {}');
  const keys = [undefined, 'f16', 'bf16', 'i8', 'u8', 'i16', 'u16'].map((packing) =>
    shaderKey(request(packing as Packing)),
  );
  assert.equal(new Set(keys).size, keys.length);
});

test('packed: elements are read and written through functions', () => {
  const text = shaderText(request('u8'));
  assert.match(text, /write_y\(u32\(i\), read_x\(u32\(at\)\) \+ read_x\(u32\(0\)\)\);/);
  assert.match(text, /var<storage, read> x: array<u32>;/);
});

/**
 * The form in which `lanes` elements are read and written. Elements smaller than a word share it with others, whose
 * bits must stay.
 */
const WORDS: [Packing, 1 | 2 | 4, read: string, written: string][] = [
  ['f16', 4, 'vec2<u32>', 'vec2<u32>'],
  ['f16', 2, 'u32', 'u32'],
  ['f16', 1, 'u32', 'atomic<u32>'],
  ['bf16', 4, 'vec2<u32>', 'vec2<u32>'],
  ['bf16', 2, 'u32', 'u32'],
  ['bf16', 1, 'u32', 'atomic<u32>'],
  ['i16', 4, 'vec2<u32>', 'vec2<u32>'],
  ['u8', 4, 'u32', 'u32'],
  ['i8', 2, 'u32', 'atomic<u32>'],
  ['u8', 1, 'u32', 'atomic<u32>'],
];
for (const [packing, lanes, read, written] of WORDS) {
  test(`packed: ${lanes} of ${packing} lie in ${written}`, () => {
    const { types, functions } = withPacked(BODY, [
      { name: 'x', packing, lanes },
      { name: 'y', packing, lanes },
    ]);
    assert.deepEqual(types, { x: read, y: written });
    assert.equal(
      functions.some((text) => text.includes('atomicAnd')),
      written === 'atomic<u32>',
    );
  });
}

test('packed: a single lane of a vector cannot be written', () => {
  assert.throws(
    () => withPacked('fn main() { y[i].x = 1.0; }', [{ name: 'y', packing: 'f16', lanes: 4 }]),
    KernelError,
  );
});
