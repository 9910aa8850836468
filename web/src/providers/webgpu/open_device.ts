// An open device, with everything that sessions and pages need.
import type { TileTable } from '../../contract/kernel';
import type { DeviceSettings, OpenDevice } from '../../device/module';
import { GpuSession } from './gpu_session';
import type { WebGpuSettings } from './options';
import { GpuPageTensors } from './page_tensors';
import { GpuProvider } from './provider';
import { GpuSingleKernels } from './single_kernels';
import { userKernels } from './user_kernels';

export class WebGpuDevice extends GpuProvider implements OpenDevice {
  readonly capturesGraphs = true;
  readonly keeper = new GpuPageTensors(this);
  readonly kernels = new GpuSingleKernels(this);

  get native(): GPUDevice {
    return this.gpu.device;
  }

  session(settings: DeviceSettings, own: string, tiles?: TileTable): GpuSession {
    return new GpuSession(this, settings as WebGpuSettings, userKernels(own), tiles);
  }
}
