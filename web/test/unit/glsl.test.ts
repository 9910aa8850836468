import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KernelError } from '../../src/errors';
import { drawsOf, fragmentText } from '../../src/providers/webgl/glsl/fragment';
import { parseModule } from '../../src/providers/webgl/glsl/syntax';
import { writeModule } from '../../src/providers/webgl/glsl/writer';
import { Pieces } from '../../src/providers/webgl/pieces';

const arrays = [{ name: 'x', type: { scalar: 'f32', lanes: 1 } } as const];
const uniforms = new Map([['count', 'u32' as const]]);

/** The body of `fn f() {…}` in GLSL, in one line. */
function written(body: string, before = ''): string {
  const text = writeModule(parseModule(`${before} fn f() { ${body} }`), { arrays, uniforms });
  return text.slice(text.lastIndexOf('void m_f() {') + 13, -2).replaceAll('\n', ' ');
}

test('glsl: variables get the types that WGSL infers', () => {
  assert.equal(written('let a = 1;'), 'int m_a = 1;');
  assert.equal(written('var a = 2u + u.count;'), 'uint m_a = (2u + u.m_count);');
  assert.equal(written('let a = 1.5 * x[3];'), 'float m_a = (1.5 * read_x(3u));');
  assert.equal(written('let a = vec4(x[0]);'), 'vec4 m_a = vec4(read_x(0u));');
  assert.equal(written('let a = x[0] < 2;'), 'bool m_a = (read_x(0u) < 2.0);');
  assert.equal(written('var a: array<vec2<u32>, 2>;'), 'uvec2[2] m_a = uvec2[2](uvec2(0u), uvec2(0u));');
});

test('glsl: literals become what is around them, and are folded exactly', () => {
  assert.equal(written('let a = -2147483647 - 1;'), 'int m_a = int(0x80000000u);');
  assert.equal(written('let a: f32 = 3;'), 'float m_a = 3.0;');
  assert.equal(written('let a = f32(7 / 2);'), 'float m_a = 3.0;');
  assert.equal(written('let a = U(1) << U(4);', 'alias U = vec2<u32>;'), 'uvec2 m_a = (uvec2(1u) << uvec2(4u));');
});

test('glsl: lanes are compared and chosen one by one', () => {
  const before = 'alias F = vec4<f32>;';
  assert.equal(
    written('let a = F(x[0]); let b = select(a, F(0.0), (a < F(1)) & (a > F(0)));', before).split('; ')[1],
    'vec4 m_b = chosen_each(m_a, vec4(0.0), both(lessThan(m_a, vec4(1.0)), greaterThan(m_a, vec4(0.0))));',
  );
});

test('glsl: structs, loops, and names that mean something nearer', () => {
  const pair = 'struct Pair { low: f32, high: vec2<f32> }';
  assert.equal(
    written('let p = Pair(1, vec2<f32>(2)); let q = p.high.y;', pair),
    'm_Pair m_p = m_Pair(1.0, vec2(2.0)); float m_q = m_p.m_high.y;',
  );
  assert.match(written('let x = x[0]; let y = x;'), /float m_x = read_x\(0u\); float m_y = m_x;/);
  assert.match(written('for (var k = 0u; k < 3u; k++) { if (k == 1u) { continue; } }'), /m_k = \(m_k \+ 1u\)\)/);
});

test('glsl: what has no form there is refused', () => {
  for (const [body, before] of [
    ['workgroupBarrier();', ''],
    ['let a = nobody;', ''],
    ['let a = u.nobody;', ''],
    ['', 'var<workgroup> shared: array<f32, 4>;'],
    ['let a = 1 ? 2;', ''],
  ])
    assert.throws(
      () => written(body, before),
      (error) => error instanceof KernelError && error.notImplemented,
      body,
    );
});

const request = (outputs: { name: string; type: string }[]) => ({
  shader: { name: 'probe', wgsl: () => `fn main(@builtin(local_invocation_index) lane: u32) { y[lane] = 1.0; }` },
  spec: {},
  bindings: outputs.map((each) => ({ ...each, writable: true })),
  uniforms: [],
});

test('glsl: a fragment runs the threads of its texel', () => {
  const each = (type: string) => fragmentText(request([{ name: 'y', type }]), [0]);
  assert.match(each('f32'), /for \(uint k = 0u; k < 4u; k\+\+\)/);
  assert.doesNotMatch(each('vec4<f32>'), /for \(/);
});

test('glsl: checked, a thread that writes elsewhere, or nothing, is found', () => {
  const probe = { ...request([{ name: 'y', type: 'f32' }]), uniforms: [{ name: 'count', type: 'u32' as const }] };
  const text = fragmentText(probe, [0], true);
  assert.match(text, /if \(i == wanted\) \{ made_y = value; own_y = true; \} else astray = true;/);
  assert.match(text, /astray = astray \|\| \(wanted < u\.m_count && !own_y\);/);
  assert.match(text, /result_y = astray \? uvec4\(0x7fc0deadu\) : words_y;/);
  assert.doesNotMatch(fragmentText(probe, [0]), /astray/);
});

test('glsl: outputs of one size share a draw', () => {
  const named = (...types: string[]) => request(types.map((type, i) => ({ name: `y${i}`, type })));
  assert.deepEqual(drawsOf(named('f32', 'vec4<f32>', 'u32')), [[0, 2], [1]]);
  assert.deepEqual(drawsOf(named(...new Array<string>(5).fill('f32'))), [[0, 1, 2, 3], [4]]);
});

test('pieces: what is written later counts, and what was taken is gone', () => {
  const pieces = new Pieces();
  pieces.put(0, Uint8Array.of(1, 2, 3, 4, 5, 6));
  pieces.put(2, Uint8Array.of(9, 9));
  assert.deepEqual([...pieces.at(0, 8)], [1, 2, 9, 9, 5, 6, 0, 0]);
  pieces.cut(1, 2);
  assert.deepEqual([...pieces.at(0, 6)], [1, 0, 0, 9, 5, 6]);
  pieces.cut(0, 6);
  assert.deepEqual([...pieces.at(0, 2)], [0, 0]);
});
