// The WebNN contexts of a page, by the ids that sessions name them by (`deviceId`).
import { invalid, messageOf, RuntimeError } from '../../errors';
import { ErrorCode } from '../../schema';
import type { Devices } from '../../device/module';
import type { DeviceProvider } from '../../device/provider';
import { MlDevice } from './device';
import { NAME, navigatorMl } from './ml';
import { MlSession } from './session';

interface Options {
  readonly deviceType?: string;
  readonly powerPreference?: string;
}

interface Open {
  readonly opening: Promise<MlDevice>;
  readonly options: string;
  sessions: number;
}

export class MlContexts implements Devices {
  private readonly contexts = new Map<number, Open>();

  async open(id: number, { deviceType, powerPreference }: Options = {}): Promise<MlDevice> {
    const options = JSON.stringify([deviceType, powerPreference]);
    const known = this.contexts.get(id);
    if (known) {
      const device = await known.opening;
      if (device.lost === undefined) {
        if (known.options !== options && deviceType !== undefined)
          throw invalid(`WebNN context ${id} is open with other options: give another deviceId`);
        return device;
      }
    }
    const opening = openContext({ deviceType, powerPreference });
    this.contexts.set(id, { opening, options, sessions: 0 });
    try {
      const device = await opening;
      device.buffers.onEmpty = () => this.closeUnused(id, device);
      return device;
    } catch (error) {
      this.contexts.delete(id);
      throw error;
    }
  }

  async enter(id: number, options: Options): Promise<MlDevice> {
    const device = await this.open(id, options);
    this.contexts.get(id)!.sessions++;
    return device;
  }

  leave(id: number, device: DeviceProvider): void {
    const context = this.contexts.get(id);
    void context?.opening.then((open) => {
      if (open !== device) return;
      context.sessions--;
      this.closeUnused(id, open);
    });
  }

  /** Without sessions and tensors it goes. */
  private closeUnused(id: number, device: MlDevice): void {
    const context = this.contexts.get(id);
    if (!context || context.sessions > 0 || device.buffers.count > 0) return;
    this.contexts.delete(id);
    device.close();
  }

  async all(): Promise<ReadonlyMap<number, MlDevice>> {
    const open = await Promise.all([...this.contexts].map(async ([id, { opening }]) => [id, await opening] as const));
    return new Map(open.filter(([, { lost }]) => lost === undefined));
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
