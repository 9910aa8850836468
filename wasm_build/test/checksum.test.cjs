// The checksum of files.
'use strict';
const assert = require('node:assert/strict');
const { test } = require('node:test');
const zlib = require('node:zlib');
const { Core } = require('./core.cjs');

test("the core's CRC-32 is zlib's, from any place on and in pieces", async () => {
  const { module } = await Core.load();
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * i * 31) >> 5);
  const address = module._ort_malloc(bytes.length + 16) >>> 0;
  for (const shift of [0, 1, 7]) {
    module.HEAPU8.set(bytes, address + shift);
    for (const size of [0, 1, 15, 16, 17, 400, 1000]) {
      const half = size >> 1;
      const first = module._ort_crc32(~0, address + shift, half);
      const sum = ~module._ort_crc32(first, address + shift + half, size - half) >>> 0;
      assert.equal(sum, zlib.crc32(bytes.subarray(0, size)), `${size} bytes, shifted by ${shift}`);
    }
  }
  module._ort_free(address);
});
