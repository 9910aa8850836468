import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFile } from '../../src/package/model_file';

const answer = async () => new Response('model', { headers: { 'Accept-Ranges': 'bytes' } });

test('ranges are asked of the server that gave a file, and not for what a cache gave', async () => {
  const real = globalThis.fetch;
  globalThis.fetch = answer as typeof fetch;
  try {
    assert.equal((await openFile('http://example.com/m.pyort')).ranges, 'http://example.com/m.pyort');
    assert.equal((await openFile('http://example.com/m.pyort', answer)).ranges, undefined);
  } finally {
    globalThis.fetch = real;
  }
});
