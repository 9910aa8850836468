// WebGL 2.
import type { ProviderModule } from '../../device/module';
import { providerSettings } from '../../device/options';
import { NAME } from './context';
import { GlContexts } from './contexts';

const webgl: ProviderModule = {
  name: NAME,
  settings: (given) => {
    const { deviceId, powerPreference, checkWrites } = providerSettings(NAME, given);
    const device = { powerPreference: powerPreference || undefined, checkWrites: checkWrites || undefined };
    return { deviceId, device, preserveDevice: false, enableGraphCapture: false };
  },
  devices: () => new GlContexts(),
};

export default webgl;
