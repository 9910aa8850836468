// The WebGL contexts of a page, by the ids that sessions name them by (`deviceId`).
import { OpenDevices } from '../../device/open_devices';
import { type ContextOptions, openContext } from './context';
import { GlDevice } from './device';
import { Gl } from './gl';
import { GlSession } from './session';

export class GlContexts extends OpenDevices<GlDevice, ContextOptions> {
  protected readonly fixed = ['powerPreference', 'checkWrites'] as const;

  protected async start(_id: number, options: ContextOptions): Promise<GlDevice> {
    return new GlDevice(new Gl(await openContext(options)), (device) => new GlSession(device), options.checkWrites);
  }

  protected close(_id: number, device: GlDevice): void {
    device.context.close();
  }
}
