// The options of the WebGPU provider as a C struct: zeros are the defaults, strings fill it in.
'use strict';
const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { Core, CoreError } = require('./core.cjs');

/** An option as text. */
const get = ({ module, withText }, options, key) =>
  withText([key], (at) => module.UTF8ToString(module._ort_webgpu_options_get(options, module.HEAPU32[at >>> 2])));
/** The options as Python declares them. */
const ROWS = `import json
from py_ort.providers import PROVIDERS
options = PROVIDERS["webgpu"].options
print(json.dumps([{"key": o.key, "kind": o.kind, "values": o.values, "default": o.default} for o in options]))`;
const TABLE = JSON.parse(execFileSync('python3', ['-c', ROWS], { cwd: path.join(__dirname, '../..') }));

async function start() {
  const core = await Core.load();
  const { module } = core;
  /** Calls f with an array of pointers to these texts. */
  core.withText = (texts, f) => {
    const pointers = texts.map((text) => module.stringToNewUTF8(text));
    try {
      return core.withWords(pointers, f);
    } finally {
      for (const pointer of pointers) module._free(pointer);
    }
  };
  core.append = (options, entries) =>
    core.withText(
      entries.map(([key]) => key),
      (keys) =>
        core.withText(
          entries.map(([, value]) => value),
          (values) => core.check(module._ort_webgpu_options_append(options, keys, values, entries.length)),
        ),
    );
  return core;
}

test('a zeroed struct has the defaults, and so has one that was made', async () => {
  const core = await start();
  const zeros = core.copyIn(new Uint8Array(64));
  const made = core.module._ort_webgpu_options_create();
  assert.equal(TABLE.length, 13);
  for (const { key, default: initial } of TABLE)
    for (const options of [zeros, made]) assert.equal(get(core, options, key), initial, key);
  core.module._ort_webgpu_options_release(made);
});

test('every value of every option is kept, the first one too', async () => {
  const core = await start();
  const options = core.module._ort_webgpu_options_create();
  for (const { key, kind, values } of TABLE)
    for (const value of { number: ['0', '7'], text: ['a\nb', ''] }[kind] ?? values) {
      core.append(options, [[`ep.webgpuexecutionprovider.${key}`, value]]);
      assert.equal(get(core, options, key), value, key);
    }
  core.module._ort_webgpu_options_release(options);
});

test('several at once, onto a struct that has some; a wrong one is named', async () => {
  const core = await start();
  const options = core.copyIn(new Uint8Array(64));
  core.module.HEAPU32[options >>> 2] = 5; // device_id, as a C program sets it
  core.append(options, [
    ['validationMode', 'full'],
    ['preferredLayout', 'NCHW'],
  ]);
  core.append(options, []);
  const read = (key) => get(core, options, key);
  assert.deepEqual([read('deviceId'), read('validationMode'), read('preferredLayout')], ['5', 'full', 'NCHW']);
  const wrong = [
    ['zoom', '1', 'has no option "zoom"; it has deviceId'],
    ['uniformBufferCacheMode', 'big', 'one of disabled, lazyRelease, simple, bucket'],
    ['deviceId', '-1', 'a whole number from 0'],
  ];
  for (const [key, value, words] of wrong)
    assert.throws(
      () => core.append(options, [[key, value]]),
      (e) => e instanceof CoreError && e.message.includes(words),
    );
  assert.equal(read('validationMode'), 'full');
});
