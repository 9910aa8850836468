// What the options of the WebGPU provider mean: the core reads them
// (wasm_build/include/py_ort/webgpu_provider_options.h).
import type { BufferKind, CacheMode, CacheModes } from './buffer_cache';
import type { DeviceOptions } from './device';
import type { ValidationMode } from './scopes';
import type { Core } from '../../core/core';

/** As a user gives them, by onnxruntime's names: strings, or what becomes the right string. */
export type WebGpuOptions = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface WebGpuSettings {
  readonly deviceId: number;
  readonly device: DeviceOptions;
  readonly preserveDevice: boolean;
  readonly enableGraphCapture: boolean;
  readonly validationMode: ValidationMode;
  readonly cacheModes: CacheModes;
}

const MODE_KEYS: Readonly<Record<BufferKind, string>> = {
  storage: 'storageBufferCacheMode',
  uniform: 'uniformBufferCacheMode',
  queryResolve: 'queryResolveBufferCacheMode',
  default: 'defaultBufferCacheMode',
};

/** Throws invalid_argument for a key or a value that is none. */
export function webGpuSettings(core: Core, given: WebGpuOptions = {}): WebGpuSettings {
  const entries = Object.entries(given).map(([key, value]) => [key, textOf(value)] as const);
  return core.withWebGpuOptions(entries, (get) => {
    const modes = Object.entries(MODE_KEYS).map(([kind, key]) => [kind, get(key) as CacheMode]);
    return {
      deviceId: Number(get('deviceId')),
      device: {
        powerPreference: (get('powerPreference') || undefined) as GPUPowerPreference | undefined,
        forceFallbackAdapter: get('forceFallbackAdapter') === '1' || undefined,
        subgroupMatrix: get('subgroupMatrix') === '1' || undefined,
      },
      preserveDevice: get('preserveDevice') === '1',
      enableGraphCapture: get('enableGraphCapture') === '1',
      validationMode: get('validationMode') as ValidationMode,
      cacheModes: Object.fromEntries(modes) as CacheModes,
    };
  });
}

function textOf(value: WebGpuOptions[string]): string {
  if (typeof value === 'boolean') return value ? '1' : '0';
  return typeof value === 'object' ? value.join('\n') : String(value);
}
