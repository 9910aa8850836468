// The devices of a provider, by the ids of the option `deviceId`.
import { invalid, RuntimeError } from '../errors';
import { ErrorCode } from '../schema';
import type { Devices, OpenDevice } from './module';
import type { DeviceProvider } from './provider';

interface Entry<D, O> {
  readonly opening: Promise<D>;
  /** Set once it is open. */
  device: D | undefined;
  readonly options: O;
  sessions: number;
  preserve: boolean;
}

/** One of the page's own objects, from which a device is made; adapters are never lost. */
type Source = object & { readonly lost?: Promise<unknown> };

export abstract class OpenDevices<D extends OpenDevice, O extends object, S extends Source = Source>
  implements Devices
{
  private readonly entries = new Map<number, Entry<D, O>>();
  private readonly offered = new Map<number, S>();

  protected abstract start(id: number, options: O): Promise<D>;

  /** The options that a device keeps from its opening. */
  protected abstract readonly fixed: readonly (string & keyof O)[];

  /** Throws if an open device differs from the wanted one. */
  protected check(id: number, _device: D, has: O, wanted: O): void {
    for (const key of this.fixed) {
      if (wanted[key] === undefined || wanted[key] === has[key]) continue;
      const said = has[key] === undefined ? `without ${key}` : `with ${key} ${String(has[key])}`;
      throw invalid(`device ${id} was opened ${said}: for ${String(wanted[key])} give another deviceId, above 0`);
    }
  }

  /** Called once for each device. */
  protected opened(_id: number, _device: D): void {}

  protected abstract close(id: number, device: D): void;

  /** True if it stays open without sessions and tensors. */
  protected stays(_id: number): boolean {
    return false;
  }

  offer(id: number, source: S): void {
    if (this.offered.get(id) === source) return;
    if (!Number.isInteger(id) || id <= 0) throw invalid(`device id ${id}: a context of one's own has an id above 0`);
    if (this.entries.has(id)) throw invalid(`device ${id} is in use already: register under another id`);
    this.offered.set(id, source);
  }

  /** The page's own object for the device `id`, if there is one. */
  protected given(id: number): S | undefined {
    return this.offered.get(id);
  }

  /** The same for a device that is to be opened. @throws device_lost if it was lost. */
  protected async usable(id: number): Promise<S | undefined> {
    const source = this.offered.get(id);
    if (source?.lost && (await isOver(source.lost)))
      throw new RuntimeError(ErrorCode.device_lost, `device ${id}, which the page registered, is lost`);
    return source;
  }

  /** The device `id`, opened once, and again after it was lost. */
  async open(id: number, options: O = {} as O): Promise<D> {
    const known = this.entries.get(id);
    if (known) {
      const device = await known.opening;
      if (device.lost === undefined) {
        try {
          this.check(id, device, known.options, options);
          return device;
        } catch (error) {
          if (!this.closeUnused(id, device)) throw error;
        }
      }
      // Another caller may have been faster.
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

  /** A session uses this device until it leaves. */
  async enter(id: number, options: O, preserve: boolean): Promise<D> {
    for (;;) {
      const device = await this.open(id, options);
      const entry = this.entries.get(id);
      // Its last session may just have left, which closes the device.
      if (entry?.device !== device) continue;
      entry.sessions++;
      device.enter?.();
      entry.preserve ||= preserve;
      return device;
    }
  }

  leave(id: number, device: DeviceProvider): void {
    const entry = this.entries.get(id);
    // It was lost, and another one has replaced it.
    if (!entry?.device || entry.device !== device) return;
    entry.sessions--;
    device.leave?.();
    this.closeUnused(id, entry.device);
  }

  /** Returns true if nothing uses the device, which is then closed. */
  private closeUnused(id: number, device: D): boolean {
    const entry = this.entries.get(id);
    if (this.stays(id) || !entry || entry.preserve || entry.sessions > 0 || device.buffers.count > 0) return false;
    this.entries.delete(id);
    this.close(id, device);
    return true;
  }

  /** The open devices. */
  async all(): Promise<ReadonlyMap<number, D>> {
    return new Map(await Promise.all([...this.entries].map(async ([id, { opening }]) => [id, await opening] as const)));
  }
}

function isOver(lost: Promise<unknown>): Promise<boolean> {
  const soon = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false));
  });
  return Promise.race([lost.then(() => true), soon]);
}
