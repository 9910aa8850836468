// Users' texts: the helpers declared for them, and permitted changes of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { helperText, needsDims, type HelpedTensor } from '../../src/providers/webgpu/user_kernels/helpers';
import { hoistUniforms } from '../../src/providers/webgpu/wgsl/hoist';

const x: HelpedTensor = { name: 'x', storage: 'f16', rank: 2, written: false };
const y: HelpedTensor = { name: 'y', storage: 'i32', rank: 0, written: true };

test('only what a text names is declared', () => {
  assert.equal(helperText('y[i] = 1;', [x, y]), 'alias T_x = f32;\nalias T_y = i32;');
  const text = 'store_y(i, i32(x_at(a, b)));';
  const declared = helperText(text, [x, y]);
  assert.match(declared, /fn x_at\(i0: u32, i1: u32\) -> T_x \{ return f32\(x\[\(i0 \* u.x_dim_1 \+ i1\)\]\); \}/);
  assert.match(declared, /fn store_y\(i: u32, value: T_y\) \{ y\[i\] = value; \}/);
  assert.doesNotMatch(declared, /load_x|x_dim\(|y_put/);
  assert.deepEqual(
    [x, y].map((tensor) => needsDims(text, tensor)),
    [true, false],
  );
});

test('inputs cannot be stored to', () => {
  assert.doesNotMatch(helperText('store_x(0u, 1.0);', [x, y]), /fn store_x/);
});

test('the library comes in where it is called and not defined', () => {
  assert.match(helperText('let a = tanh_(b);', []), /fn tanh_\(/);
  assert.doesNotMatch(helperText('fn tanh_(v: f32) -> f32 { return v; } let a = tanh_(b);', []), /fn with_sign/);
});

test('uniforms are hoisted in main only, whatever comments say', () => {
  const main = (body: string) => `fn main (i: u32) {\n${body}}\nfn other() -> u32 { return u.n; }`;
  const text = main('  // if (a) {\n  y[i] = u.n; /* { */\n');
  const hoisted = hoistUniforms(text);
  assert.ok(hoisted.includes('let uniform_n = u.n;') && hoisted.includes('y[i] = uniform_n;'), hoisted);
  assert.ok(hoisted.endsWith('fn other() -> u32 { return u.n; }'), hoisted);
  assert.equal(hoistUniforms('fn other() { a = u.n; }'), 'fn other() { a = u.n; }');
});
