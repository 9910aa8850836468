// WebGPU.
import type { ProviderModule } from '../../device/module';
import { DeviceContexts } from './contexts';
import { webGpuSettings } from './options';
import { NAME } from './provider';

const webgpu: ProviderModule = {
  name: NAME,
  forCompiler: ['preferredLayout', 'forceCpuNodeNames'],
  settings: webGpuSettings,
  devices: (core, log) => new DeviceContexts(async () => webGpuSettings(await core()).cacheModes, log),
};

export default webgpu;
