import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessThrough } from '../../src/providers/webgpu/wgsl/accessors';

const main = (body: string): string => `fn main() { ${body} }`;

/** Statements, and their form when x and y are accessed through functions. */
const REWRITTEN: readonly [string, string][] = [
  ['y[i] = x[i];', 'write_y(u32(i), read_x(u32(i)));'],
  ['y[at + 1u] = a[x[i]] + x[f(i, 2)].zw;', 'write_y(u32(at + 1u), a[read_x(u32(i))] + read_x(u32(f(i, 2))).zw);'],
  ['y[x[i]] = y[y[j]];', 'write_y(u32(read_x(u32(i))), read_y(u32(read_y(u32(j)))));'],
  ['y[i] += f(x[i], 1);', 'write_y(u32(i), read_y(u32(i)) + (f(read_x(u32(i)), 1)));'],
  ['y[i] <<= 2u;', 'write_y(u32(i), read_y(u32(i)) << (2u));'],
  ['y[i]++;', 'write_y(u32(i), read_y(u32(i)) + (1));'],
  ['y[i].z = x[i].x;', 'write_lane_y(u32(i), 2u, read_x(u32(i)).x);'],
  ['y[i][k] -= v;', 'write_lane_y(u32(i), u32(k), read_y(u32(i))[u32(k)] - (v));'],
  ['if (x[i] == y[i]) { return; }', 'if (read_x(u32(i)) == read_y(u32(i))) { return; }'],
  ['let v = a & x[i];', 'let v = a & read_x(u32(i));'],
  [
    'for (var k = x[0]; k < x[1]; y[k] = k) { }',
    'for (var k = read_x(u32(0)); k < read_x(u32(1)); write_y(u32(k), k)) { }',
  ],
  // Not the bindings: members, and variables that shadow them.
  ['let v = p.x[i];', 'let v = p.x[i];'],
  ['let x = x[0]; let v = x[i];', 'let x = read_x(u32(0)); let v = x[i];'],
  ['{ var x = a; x[0] = 1; } y[0] = x[0];', '{ var x = a; x[0] = 1; } write_y(u32(0), read_x(u32(0)));'],
  [
    'for (var x = b; ; ) { x[0] = 1; } y[0] = x[0];',
    'for (var x = b; ; ) { x[0] = 1; } write_y(u32(0), read_x(u32(0)));',
  ],
  ['y[i] = x[i]; // y[i] = x[i]', 'write_y(u32(i), read_x(u32(i)));'],
];

for (const [written, expected] of REWRITTEN) {
  test(`accessors: ${written}`, () => {
    const [, body] = /^fn main\(\) \{ ([\s\S]*) \}$/.exec(accessThrough(`${main(`${written}\n`)}`, ['x', 'y']).text)!;
    assert.equal(body.trim(), expected);
  });
}

test('accessors: parameters shadow, in their function only', () => {
  const { text } = accessThrough(
    'fn map(x: vec4<f32>, @builtin(a) k: u32) -> f32 { return x[k]; } fn g() -> f32 { return x[0]; }',
    ['x'],
  );
  assert.equal(
    text,
    'fn map(x: vec4<f32>, @builtin(a) k: u32) -> f32 { return x[k]; } fn g() -> f32 { return read_x(u32(0)); }',
  );
});

test('accessors: which functions there must be', () => {
  const { reads, writes, laneWrites } = accessThrough(main('y[0] = x[0]; z[0].y = 1; w[0] *= 2;'), [
    'x',
    'y',
    'z',
    'w',
    'v',
  ]);
  assert.deepEqual([[...reads], [...writes], [...laneWrites]], [['x', 'w'], ['y', 'w'], ['z']]);
});

for (const used of ['let p = &x[0];', 'f(&x);', 'let n = arrayLength(&x);', 'atomicAdd(&x[i], 1u);']) {
  test(`accessors: refused is ${used}`, () =>
    assert.throws(() => accessThrough(main(used), ['x']), /cannot be bound in parts/));
}
