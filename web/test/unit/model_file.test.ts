import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ErrorCode } from '../../src/schema';
import { openFile } from '../../src/package/model_file';

const answer = async () => new Response('model', { headers: { 'Accept-Ranges': 'bytes' } });

test('ranges are asked of the server that gave a file, and not for what a cache gave', async () => {
  const real = globalThis.fetch;
  globalThis.fetch = answer as typeof fetch;
  try {
    assert.equal((await openFile('http://example.com/m.pyort')).ranges, 'http://example.com/m.pyort');
    assert.equal((await openFile('http://example.com/m.pyort', undefined, answer)).ranges, undefined);
  } finally {
    globalThis.fetch = real;
  }
});

test('a file that promises more than it has takes no more memory than it has', async () => {
  const { reader } = await openFile(new Uint8Array(3 << 20).fill(7));
  assert.deepEqual(await reader.read(4), Uint8Array.of(7, 7, 7, 7));
  assert.equal((await reader.read(2 << 20)).at(-1), 7);
  await assert.rejects(reader.read(2 ** 53 - 64), {
    code: ErrorCode.invalid_graph,
    message: /ended after 3145728 bytes/,
  });
});
