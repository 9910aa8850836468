// The devices of a provider by the ids that sessions name them by (`deviceId`).
import type { Devices, OpenDevice } from './module';
import type { DeviceProvider } from './provider';

interface Entry<D, O> {
  readonly opening: Promise<D>;
  /** Once it is open. */
  device: D | undefined;
  readonly options: O;
  sessions: number;
  preserve: boolean;
}

export abstract class OpenDevices<D extends OpenDevice, O extends object> implements Devices {
  private readonly entries = new Map<number, Entry<D, O>>();

  protected abstract start(id: number, options: O): Promise<D>;

  /** Throws if a device that is open is another one than what is wanted. */
  protected abstract check(id: number, device: D, has: O, wanted: O): void;

  /** Called once for each. */
  protected opened(_id: number, _device: D): void {}

  protected abstract close(id: number, device: D): void;

  /** Whether it stays open without sessions and tensors. */
  protected stays(_id: number): boolean {
    return false;
  }

  protected has(id: number): boolean {
    return this.entries.has(id);
  }

  /** The device `id`, opened once; opened anew when it was lost. */
  async open(id: number, options: O = {} as O): Promise<D> {
    const known = this.entries.get(id);
    if (known) {
      const device = await known.opening;
      if (device.lost === undefined) {
        this.check(id, device, known.options, options);
        return device;
      }
      // Another caller may have been quicker.
      if (this.entries.get(id) !== known) return this.open(id, options);
    }
    const opening = this.start(id, options);
    const entry: Entry<D, O> = { opening, device: undefined, options, sessions: 0, preserve: false };
    this.entries.set(id, entry);
    try {
      const device = await opening;
      entry.device = device;
      device.buffers.onEmpty = () => this.closeUnused(id, device);
      this.opened(id, device);
      return device;
    } catch (error) {
      this.entries.delete(id);
      throw error;
    }
  }

  /** A session is at work on this device until it leaves. */
  async enter(id: number, options: O, preserve: boolean): Promise<D> {
    for (;;) {
      const device = await this.open(id, options);
      const entry = this.entries.get(id);
      // Its last session may have gone just now, and the device with it.
      if (entry?.device !== device) continue;
      entry.sessions++;
      entry.preserve ||= preserve;
      return device;
    }
  }

  leave(id: number, device: DeviceProvider): void {
    const entry = this.entries.get(id);
    // It was lost, and is another one by now.
    if (!entry?.device || entry.device !== device) return;
    entry.sessions--;
    this.closeUnused(id, entry.device);
  }

  private closeUnused(id: number, device: D): void {
    const entry = this.entries.get(id);
    if (this.stays(id) || !entry || entry.preserve || entry.sessions > 0 || device.buffers.count > 0) return;
    this.entries.delete(id);
    this.close(id, device);
  }

  /** The devices that are open now. */
  async all(): Promise<ReadonlyMap<number, D>> {
    return new Map(await Promise.all([...this.entries].map(async ([id, { opening }]) => [id, await opening] as const)));
  }
}
