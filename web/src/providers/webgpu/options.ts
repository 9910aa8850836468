// Options of the WebGPU provider, in the form for its parts.
import { type GivenOptions, providerSettings } from '../../device/options';

export type WebGpuSettings = ReturnType<typeof webGpuSettings>;

export function webGpuSettings(given?: GivenOptions) {
  const settings = providerSettings('webgpu', given);
  const { powerPreference, forceFallbackAdapter, subgroupMatrix } = settings;
  return {
    ...settings,
    device: {
      powerPreference: powerPreference || undefined,
      forceFallbackAdapter: forceFallbackAdapter || undefined,
      subgroupMatrix: subgroupMatrix || undefined,
    },
    cacheModes: {
      storage: settings.storageBufferCacheMode,
      uniform: settings.uniformBufferCacheMode,
      queryResolve: settings.queryResolveBufferCacheMode,
      default: settings.defaultBufferCacheMode,
    },
  };
}
