// WebGPU's part of generate.mjs: caches in buffers, and shaders that read logits.
import type { DeviceSession } from '../../../device/session';
import type { DevicePart } from '../../../generate/device_part';
import { GpuCaches } from './caches';
import { GpuRanker } from './ranker';
import { GpuSampler } from './sampler';
import type { GpuSession } from '../gpu_session';

export default function part(session: DeviceSession): DevicePart {
  const gpu = session as GpuSession;
  return {
    caches: (form, batch) => new GpuCaches(form, batch, gpu),
    sampler: (form, options) => GpuSampler.make(gpu, form, options),
    ranker: (form, options) => GpuRanker.make(gpu, form, options),
  };
}
