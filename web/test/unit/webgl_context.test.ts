import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { openContext } from '../../src/providers/webgl/context';

const all = globalThis as Record<string, unknown>;
beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
afterEach(() => {
  mock.timers.reset();
  delete all.OffscreenCanvas;
  delete all.WebGL2RenderingContext;
});

/** A browser that has no context the first `failures` times. */
function browser(failures: number): { readonly asked: () => number } {
  let asked = 0;
  const gl = { isContextLost: () => false, getParameter: () => 16384 };
  all.WebGL2RenderingContext = Object;
  all.OffscreenCanvas = class {
    getContext = () => (asked++ < failures ? null : gl);
  };
  return { asked: () => asked };
}

async function opened(): Promise<unknown> {
  const result = openContext({}).then(
    () => 'open',
    (error: Error) => error.message,
  );
  for (let turns = 0; turns < 10; turns++) {
    await Promise.resolve();
    mock.timers.tick(1000);
  }
  return result;
}

test('a context is asked for again while the GPU process starts', async () => {
  const { asked } = browser(2);
  assert.equal(await opened(), 'open');
  assert.equal(asked(), 3);
});

test('a browser without a GPU is asked a few times', async () => {
  const { asked } = browser(Infinity);
  assert.match(String(await opened()), /no WebGL 2 here, or no GPU/);
  assert.equal(asked(), 4);
});

test('a browser without WebGL 2 is not waited for', async () => {
  assert.match(String(await opened()), /no WebGL 2 here$/);
});
