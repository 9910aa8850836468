// WebNN.
import type { ProviderModule } from '../../device/module';
import { providerSettings } from '../../device/options';
import { MlContexts } from './contexts';
import { NAME } from './ml';

const webnn: ProviderModule = {
  name: NAME,
  settings: (given) => {
    const { deviceId, deviceType, powerPreference } = providerSettings(NAME, given);
    return {
      deviceId,
      device: { deviceType, powerPreference },
      preserveDevice: false,
      enableGraphCapture: false,
    };
  },
  devices: () => new MlContexts(),
};

export default webnn;
