// WebGPU's part that is needed before its code is loaded.
import type { PageSide } from '../../device/module';
import type { GivenOptions } from '../../device/options';

/** Members of `env.webgpu`. */
const FROM_ENV = ['powerPreference', 'forceFallbackAdapter'];

const webgpu: PageSide = {
  isHere: () => globalThis.navigator?.gpu !== undefined,
  // They select the device to open.
  optionsOf: (flags, given) =>
    Object.fromEntries(
      Object.entries(flags ?? {}).filter(([name, value]) => !given && value && FROM_ENV.includes(name)),
    ) as GivenOptions,
  objects: ['device'],
  sourceOf: ({ device, adapter }) => (device ?? adapter) as object | undefined,
};

export default webgpu;
