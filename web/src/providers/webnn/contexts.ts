// The WebNN contexts of a page, by the ids that sessions name them by (`deviceId`).
import { invalid, messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import { OpenDevices } from '../../device/open_devices';
import { MlDevice } from './device';
import { NAME, navigatorMl } from './ml';
import { MlSession } from './session';

interface Options {
  readonly deviceType?: string;
  readonly powerPreference?: string;
}

export class MlContexts extends OpenDevices<MlDevice, Options> {
  protected start(_id: number, options: Options): Promise<MlDevice> {
    return openContext(options);
  }

  protected check(id: number, _device: MlDevice, has: Options, wanted: Options): void {
    const same = has.deviceType === wanted.deviceType && has.powerPreference === wanted.powerPreference;
    if (!same && wanted.deviceType !== undefined)
      throw invalid(`WebNN context ${id} is open with other options: give another deviceId`);
  }

  protected close(_id: number, device: MlDevice): void {
    device.close();
  }
}

async function openContext({ deviceType, powerPreference }: Options): Promise<MlDevice> {
  const ml = navigatorMl();
  if (!ml) throw new RuntimeError(ErrorCode.no_adapter, 'this browser has no WebNN (navigator.ml)', { provider: NAME });
  const asked = { ...(deviceType && { deviceType }), ...(powerPreference && { powerPreference }) };
  try {
    const context = await ml.createContext(asked);
    const where = `WebNN on ${deviceType || 'the default device'}`;
    const description = { description: where, ...asked, limits: context.opSupportLimits() };
    return new MlDevice(context, description, (device) => new MlSession(device));
  } catch (error) {
    throw new RuntimeError(ErrorCode.no_adapter, `WebNN gives no context: ${messageOf(error)}`, { provider: NAME });
  }
}
