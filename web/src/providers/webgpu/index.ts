// WebGPU.
import type { ProviderModule } from '../../device/module';
import { DeviceContexts } from './contexts';
import { webGpuSettings } from './options';
import { NAME } from './provider';

const webgpu: ProviderModule = {
  name: NAME,
  settings: webGpuSettings,
  devices: (log) => new DeviceContexts(log),
};

export default webgpu;
