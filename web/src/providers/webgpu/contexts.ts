// The WebGPU devices of a page, by the ids that sessions name them by (`deviceId`). 0 is the default context, opened
// when it is first wanted and kept. The others are the user's: a device or an adapter registered by the page, or a
// device opened with a session's options, which goes with the last session and the last tensor in it.
import { ErrorCode } from '../../schema';
import { invalid, messageOf, RuntimeError } from '../../errors';
import { adoptDevice, checkHardware, type DeviceOptions, type Gpu, openGpu } from './device';
import type { Devices } from '../../device/module';
import type { DeviceProvider } from '../../device/provider';
import { WebGpuDevice } from './open_device';
import { webGpuSettings } from './options';

interface Context {
  readonly opening: Promise<WebGpuDevice>;
  /** Once it is open. */
  provider: WebGpuDevice | undefined;
  readonly options: DeviceOptions;
  sessions: number;
  preserve: boolean;
}

export class DeviceContexts implements Devices {
  private readonly contexts = new Map<number, Context>();
  private readonly registered = new Map<number, GPUDevice | GPUAdapter>();

  constructor(private readonly log: (severity: number, text: string) => void) {}

  /** Makes a device of the page's own, or one of this adapter, the context `id`. */
  offer(id: number, source: GPUDevice | GPUAdapter): void {
    if (this.registered.get(id) === source) return;
    if (!Number.isInteger(id) || id <= 0) throw invalid(`device id ${id}: a context of one's own has an id above 0`);
    if (this.contexts.has(id)) throw invalid(`device ${id} is in use already: register under another id`);
    this.registered.set(id, source);
  }

  /** The device `id`, opened once; opened anew when it was lost. */
  async open(id: number, options: DeviceOptions = {}): Promise<WebGpuDevice> {
    const known = this.contexts.get(id);
    if (known) {
      const provider = await known.opening;
      if (provider.gpu.lost === undefined) {
        checkSame(id, known.options, options);
        checkHardware(options, provider.gpu.description);
        return provider;
      }
      // Another caller may have been quicker.
      if (this.contexts.get(id) !== known) return this.open(id, options);
    }
    const opening = this.start(id, options);
    const context: Context = { opening, provider: undefined, options, sessions: 0, preserve: false };
    this.contexts.set(id, context);
    try {
      const provider = await opening;
      context.provider = provider;
      const { vendor, architecture, description, features } = provider.gpu.description;
      this.log(
        1,
        `device ${id}: ${[vendor, architecture, description].filter(Boolean).join(' ') || 'unnamed'} ` +
          `(${features.join(', ')})`,
      );
      provider.gpu.onUncapturedError = (message) => this.log(3, message);
      provider.buffers.onEmpty = () => this.closeUnused(id, provider);
      void provider.gpu.device.lost.then(({ message }) => {
        if (!provider.gpu.closed) this.log(3, `device ${id} was lost: ${message}`);
      });
      return provider;
    } catch (error) {
      this.contexts.delete(id);
      throw error;
    }
  }

  private async start(id: number, options: DeviceOptions): Promise<WebGpuDevice> {
    const source = this.registered.get(id);
    if (source && !('requestDevice' in source) && (await isLost(source)))
      throw new RuntimeError(ErrorCode.device_lost, `device ${id}, which the page registered, is lost`);
    const gpu = await this.gpu(id, options);
    if (options.subgroupMatrix && !gpu.traits.subgroupMatrix)
      this.log(
        2,
        `subgroupMatrix has no effect: device ${id} has no subgroup matrices of float16 with sums in float32, or no ` +
          'shader-f16',
      );
    return new WebGpuDevice(gpu, webGpuSettings().cacheModes); // for tensors that belong to no session
  }

  private gpu(id: number, options: DeviceOptions): Promise<Gpu> {
    const source = this.registered.get(id);
    if (!source) return openGpu(options);
    if (options.powerPreference || options.forceFallbackAdapter) {
      throw invalid(`device ${id} is registered by the page: powerPreference and forceFallbackAdapter are not for it`);
    }
    if (!('requestDevice' in source)) return adoptDevice(source);
    return openGpu(options, source).catch((error: unknown) => {
      throw invalid(
        `the adapter registered as device ${id} gives no device (${messageOf(error)}): ` +
          'it gives only one; register another adapter',
      );
    });
  }

  /** A session is at work on this device until it leaves. */
  async enter(id: number, options: DeviceOptions, preserve: boolean): Promise<WebGpuDevice> {
    for (;;) {
      const provider = await this.open(id, options);
      const context = this.contexts.get(id);
      // Its last session may have gone just now, and the device with it.
      if (context?.provider !== provider) continue;
      context.sessions++;
      context.preserve ||= preserve;
      return provider;
    }
  }

  leave(id: number, provider: DeviceProvider): void {
    const context = this.contexts.get(id);
    // It was lost, and is another one by now.
    if (!context?.provider || context.provider !== provider) return;
    context.sessions--;
    this.closeUnused(id, context.provider);
  }

  private closeUnused(id: number, { buffers, gpu }: WebGpuDevice): void {
    const context = this.contexts.get(id);
    if (id === 0 || !context || context.preserve || context.sessions > 0 || buffers.count > 0) return;
    this.contexts.delete(id);
    // The page's own device stays the page's.
    const source = this.registered.get(id);
    if (!source || 'requestDevice' in source) gpu.close();
  }

  /** The devices that are open now. */
  async all(): Promise<Map<number, WebGpuDevice>> {
    return new Map(
      await Promise.all([...this.contexts].map(async ([id, { opening }]) => [id, await opening] as const)),
    );
  }
}

function checkSame(id: number, has: DeviceOptions, wanted: DeviceOptions): void {
  for (const key of ['powerPreference', 'forceFallbackAdapter', 'subgroupMatrix'] as const) {
    if (wanted[key] === undefined || wanted[key] === has[key]) continue;
    const said = has[key] === undefined ? `without ${key}` : `with ${key} ${String(has[key])}`;
    throw invalid(`device ${id} was opened ${said}: for ${String(wanted[key])} give another deviceId, above 0`);
  }
}

function isLost(device: GPUDevice): Promise<boolean> {
  const soon = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false));
  });
  return Promise.race([device.lost.then(() => true), soon]);
}
