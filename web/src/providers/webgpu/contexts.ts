// The WebGPU devices of a page, by the ids of the option `deviceId`. 0 is the default context, opened on first use and
// kept. Devices that the page registered, as a device or as an adapter, which provides one only, are kept as well. The
// others, opened with a session's options, close after their last session and their last tensor.
import { invalid, messageOf } from '../../errors';
import { adoptDevice, checkHardware, type DeviceOptions, type Gpu, openGpu } from './device';
import { OpenDevices } from '../../device/open_devices';
import { WebGpuDevice } from './open_device';
import { webGpuSettings } from './options';

export class DeviceContexts extends OpenDevices<WebGpuDevice, DeviceOptions, GPUDevice | GPUAdapter> {
  protected readonly fixed = ['powerPreference', 'forceFallbackAdapter', 'subgroupMatrix'] as const;

  constructor(private readonly log: (severity: number, text: string) => void) {
    super();
  }

  protected override check(id: number, device: WebGpuDevice, has: DeviceOptions, wanted: DeviceOptions): void {
    super.check(id, device, has, wanted);
    checkHardware(wanted, device.gpu.description);
  }

  protected override opened(id: number, { gpu }: WebGpuDevice): void {
    const { vendor, architecture, description, features } = gpu.description;
    this.log(
      1,
      `device ${id}: ${[vendor, architecture, description].filter(Boolean).join(' ') || 'unnamed'} ` +
        `(${features.join(', ')})`,
    );
    gpu.onUncapturedError = (message) => this.log(3, message);
    void gpu.device.lost.then(({ message }) => {
      if (!gpu.closed) this.log(3, `device ${id} was lost: ${message}`);
    });
  }

  protected async start(id: number, options: DeviceOptions): Promise<WebGpuDevice> {
    const gpu = await this.gpu(id, options, await this.usable(id));
    if (options.subgroupMatrix && !gpu.traits.subgroupMatrix)
      this.log(
        2,
        `subgroupMatrix has no effect: device ${id} has no subgroup matrices of float16 with sums in float32`,
      );
    return new WebGpuDevice(gpu, webGpuSettings().cacheModes); // for tensors that belong to no session
  }

  private gpu(id: number, options: DeviceOptions, source: GPUDevice | GPUAdapter | undefined): Promise<Gpu> {
    if (!source) return openGpu(options);
    if (options.powerPreference || options.forceFallbackAdapter) {
      throw invalid(`device ${id} is the page's: leave out powerPreference and forceFallbackAdapter`);
    }
    if (!('requestDevice' in source)) return adoptDevice(source);
    return openGpu(options, source).catch((error: unknown) => {
      throw invalid(
        `the adapter registered as device ${id} gives no device (${messageOf(error)}): ` +
          'it gives only one; register another adapter',
      );
    });
  }

  protected override stays(id: number): boolean {
    return id === 0 || this.given(id) !== undefined;
  }

  protected close(id: number, { gpu }: WebGpuDevice): void {
    // The page's own device remains the page's.
    const source = this.given(id);
    if (!source || 'requestDevice' in source) gpu.close();
  }
}
