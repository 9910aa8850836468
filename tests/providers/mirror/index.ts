// A provider whose device is a mirror of the core: typed arrays in JavaScript. It has only the required parts of a
// provider.
import type { Devices, ProviderModule } from '../../../web/src/device/module';
import { invalid } from '../../../web/src/errors';
import { MirrorDevice } from './device';

function devices(): Devices {
  const open = new Map<number, MirrorDevice>();
  const device = async (id: number) => {
    const known = open.get(id);
    if (known?.lost !== undefined || !known) open.set(id, new MirrorDevice());
    return open.get(id)!;
  };
  return { open: device, enter: device, leave() {}, all: async () => open };
}

const mirror: ProviderModule = {
  name: 'mirror',
  settings({ deviceId = 0, enableGraphCapture = false, ...others } = {}) {
    const [unknown] = Object.keys(others);
    if (unknown || !/^\d+$/.test(`${deviceId}`)) throw invalid(`mirror has no option ${unknown}, or no such deviceId`);
    return { deviceId: Number(deviceId), device: {}, preserveDevice: true, enableGraphCapture: !!enableGraphCapture };
  },
  devices,
};

export default mirror;
