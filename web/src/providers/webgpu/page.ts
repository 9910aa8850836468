// WebGPU's part that is needed before its code is loaded.
import { describe, invalid } from '../../errors';
import type { PageSide } from '../../device/module';
import type { GivenOptions } from '../../device/options';

/** Members of `env.webgpu`. The others are not read: its `device` may open a device. */
const FROM_ENV = ['powerPreference', 'forceFallbackAdapter'];
const POWER = ['low-power', 'high-performance'];

/** One of the page's objects, if there is one: it has this method. */
function checked(name: string, given: unknown, kind: string, method: string): object | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof (given as { [name: string]: unknown })[method] === 'function') return given as object;
  const advice = given instanceof Promise ? ': await it' : '';
  throw invalid(`${name} of webgpu is a ${kind}, not ${describe(given)}${advice}`);
}

const webgpu: PageSide = {
  isHere: () => globalThis.navigator?.gpu !== undefined,
  // They select the device to open.
  optionsOf: (flags, given) => {
    const members = (flags ?? {}) as { readonly [name: string]: unknown };
    const { powerPreference: power } = members;
    if (power && !POWER.includes(power as string))
      throw invalid(`env.webgpu.powerPreference is one of ${POWER.join(', ')}, not "${String(power)}"`);
    return Object.fromEntries(
      FROM_ENV.flatMap((name) => (!given && members[name] ? [[name, members[name]]] : [])),
    ) as GivenOptions;
  },
  objects: ['device'],
  sourceOf: ({ device, adapter }) =>
    checked('device', device, 'GPUDevice', 'createBuffer') ??
    checked('adapter', adapter, 'GPUAdapter', 'requestDevice'),
};

export default webgpu;
