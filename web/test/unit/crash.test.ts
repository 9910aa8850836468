import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crashOf, explain, watched } from '../../src/core/crash';
import type { CoreModule } from '../../src/core/module';
import { codeOf } from '../../src/errors';
import { ErrorCode } from '../../src/schema';

/** A module with a function that is `unreachable`, one that does nothing, and a memory. */
const MODULE = new WebAssembly.Module(
  Uint8Array.from([
    ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 3, 2, 0, 0, 5, 3, 1, 0, 0],
    ...[7, 13, 3, 1, 116, 0, 0, 1, 110, 0, 1, 1, 109, 2, 0, 10, 8, 2, 3, 0, 0, 11, 2, 0, 11],
  ]),
);
const TRAP = new WebAssembly.RuntimeError('unreachable');

test('a core that is watched: what a call throws becomes what is told of it', () => {
  const seen: unknown[] = [];
  const { exports } = watched(new WebAssembly.Instance(MODULE), (thrown) => {
    seen.push(thrown);
    return new Error(`told ${seen.length}`);
  });
  const { t: trap, n: nothing, m: memory } = exports as { t(): void; n(): void; m: unknown };
  nothing();
  assert.ok(memory instanceof WebAssembly.Memory);
  assert.equal(seen.length, 0);
  assert.throws(trap, /^Error: told 1$/);
  assert.throws(trap, /^Error: told 2$/);
  assert.ok(seen[0] instanceof WebAssembly.RuntimeError);
});

test('a crash has its code, and the stack of what was thrown', () => {
  const error = crashOf(TRAP);
  assert.equal(codeOf(error), ErrorCode.core_crashed);
  assert.equal(error.message, 'the core crashed: unreachable');
  assert.equal(error.stack, TRAP.stack);
});

/** A core whose running kernel is read by `at`, as words of its heap. */
const moduleAt = (at: () => number) =>
  ({
    _ort_kernel_at_work: at,
    HEAPU32: Uint32Array.of(0, 0, 10, 20),
    UTF8ToString: (address: number) => ({ 10: 'sum', 20: 'Add' })[address],
  }) as unknown as CoreModule;

test('a crash in a kernel names its node', () => {
  const error = crashOf(TRAP);
  explain(
    error,
    moduleAt(() => 8),
  );
  assert.match(error.message, /^the core crashed: unreachable in node 'sum' \(Add\); sessions are loaded again/);
  assert.deepEqual(error.place, { node: 'sum', opType: 'Add', provider: 'wasm' });
});

test('a crash between kernels, or where the core can say nothing any more, names none', () => {
  const silent: (() => number)[] = [
    () => 0,
    () => {
      throw new WebAssembly.RuntimeError('memory access out of bounds');
    },
  ];
  for (const at of silent) {
    const error = crashOf(TRAP);
    explain(error, moduleAt(at));
    assert.match(error.message, /^the core crashed: unreachable; sessions are loaded again/);
    assert.deepEqual(error.place, {});
  }
});
