// Options of providers, read by the table that Python declares.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forTheCompiler, providerSettings } from '../../src/device/options';
import { webGpuSettings } from '../../src/providers/webgpu/options';

test('options are read by their kinds, with defaults for the others', () => {
  const given = { deviceId: '3', enableGraphCapture: true, 'ep.WebGpuExecutionProvider.validationMode': 'full' };
  const { deviceId, enableGraphCapture, validationMode, device, cacheModes } = webGpuSettings(given);
  assert.deepEqual([deviceId, enableGraphCapture, validationMode], [3, true, 'full']);
  assert.deepEqual(Object.values(device), [undefined, undefined, undefined]);
  assert.deepEqual(cacheModes, {
    storage: 'bucket',
    uniform: 'simple',
    queryResolve: 'disabled',
    default: 'disabled',
  });
  assert.equal(providerSettings('webgpu', { forceCpuNodeNames: ['a', 'b'] }).forceCpuNodeNames, 'a\nb');
  assert.equal(providerSettings('wasm').simd, 'auto');
  assert.equal(providerSettings('wasm', { useArena: true, simd: 'fixed' }).simd, 'fixed', 'an arena is ignored');
});

test('an unknown key or value is named', () => {
  for (const [given, words] of [
    [{ zoom: 1 }, 'the webgpu provider has no option "zoom"; it has deviceId, preferredLayout'],
    [{ deviceId: -1 }, 'option deviceId of the webgpu provider is a whole number from 0 to 999999999, not "-1"'],
    [
      { powerPreference: 'x' },
      'option powerPreference of the webgpu provider is one of low-power, high-performance, not',
    ],
    [{ enableGraphCapture: 'yes' }, 'option enableGraphCapture of the webgpu provider is one of 0, 1, not "yes"'],
  ] as const)
    assert.throws(
      () => webGpuSettings(given),
      (error: Error) => error.name === 'RuntimeError(invalid_argument)' && error.message.includes(words),
    );
});

test('options of the compiler are found, whoever has them', () => {
  assert.deepEqual(forTheCompiler({ webgpu: { preferredLayout: 'NCHW', deviceId: 1 }, wasm: {} }), ['preferredLayout']);
});
