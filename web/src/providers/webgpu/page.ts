// WebGPU, before anything of it is loaded.
import type { PageSide } from '../../device/module';
import type { GivenOptions } from '../../device/options';

/** Of `env.webgpu`. */
const FROM_ENV = ['powerPreference', 'forceFallbackAdapter'];

const webgpu: PageSide = {
  isHere: () => globalThis.navigator?.gpu !== undefined,
  // They say which device to open.
  optionsOf: (flags, given) =>
    Object.fromEntries(
      Object.entries(flags ?? {}).filter(([name, value]) => !given && value && FROM_ENV.includes(name)),
    ) as GivenOptions,
  objects: ['device'],
  sourceOf: ({ device, adapter }) => (device ?? adapter) as object | undefined,
};

export default webgpu;
