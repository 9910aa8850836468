// A provider whose device is a mirror of the core: typed arrays in JavaScript. What a provider must have, and no more.
import type { Devices, ProviderModule } from '../../../web/src/device/module';
import { MirrorDevice } from './device';

function devices(): Devices {
  const open = new Map<number, MirrorDevice>();
  const device = async (id: number) => {
    const known = open.get(id);
    if (known && known.lost === undefined) return known;
    const made = new MirrorDevice();
    open.set(id, made);
    return made;
  };
  return { open: device, enter: device, leave() {}, all: async () => open };
}

const mirror: ProviderModule = {
  name: 'mirror',
  settings: ({ deviceId = 0, enableGraphCapture } = {}) => ({
    deviceId: Number(deviceId),
    device: {},
    preserveDevice: true,
    enableGraphCapture: enableGraphCapture === true,
  }),
  devices,
};

export default mirror;
