// The location of a session's outputs: `preferredOutputLocation`.
import { hasGpuForm } from '../contract/elements';
import type { NodeArgEntry } from '../package/header';
import { named } from '../wire/values';
import { dtypeOfType, typeInOnnx } from './elements';
import { invalid } from '../errors';
import { capability } from '../device/module';
import type { TensorKeeper } from '../device/keeper';
import type { Engine } from './engine';
import { hasDevice } from './providers';
import type { InferenceSessionOptions, OutputLocation } from './session_options';

const LOCATIONS: readonly OutputLocation[] = ['cpu', 'gpu-buffer', 'ml-tensor'];

type Locations = InferenceSessionOptions['preferredOutputLocation'];

/** Throws invalid_argument for an unknown location, and for outputs that do not exist or cannot be there. */
export function checkLocations({ description, keeper }: Engine, locations: Locations): void {
  const given = typeof locations === 'object' ? locations : { '': locations ?? 'cpu' };
  for (const [name, location] of Object.entries(given)) {
    if (!LOCATIONS.includes(location))
      throw invalid(`preferredOutputLocation is one of "${LOCATIONS.join('", "')}", not "${String(location)}"`);
    const output = description.outputs.find((one) => one.name === name);
    if (name && !output) throw invalid(`preferredOutputLocation: the model has no output "${name}"`);
    if (location === 'cpu') continue;
    if (!keeper) {
      const [first] = description.providers;
      if (hasDevice(first)) capability(keeper, first, 'tensors that pages hold: leave out preferredOutputLocation');
      throw invalid('preferredOutputLocation: no node of this model runs on a GPU');
    }
    if (location !== keeper.location)
      throw invalid(
        `preferredOutputLocation: this session leaves outputs as "${keeper.location}", not as "${location}"`,
      );
    if (output && !fits(output, keeper))
      throw invalid(`preferredOutputLocation: output "${name}" is ${output.type}, which has no form on the device`);
  }
}

/** The outputs that stay on the device. If all are requested, outputs that cannot be there go to the CPU. */
export function onDeviceAmong(
  names: readonly string[],
  { description, keeper }: Engine,
  locations: Locations,
): string[] {
  return names.filter((name) => {
    const location = typeof locations === 'object' ? named(locations, name) : locations;
    if (!keeper || location !== keeper.location) return false;
    return typeof locations === 'object' || description.outputs.some((one) => one.name === name && fits(one, keeper));
  });
}

function fits({ type, keys }: NodeArgEntry, { holds = hasGpuForm }: TensorKeeper): boolean {
  const found = typeInOnnx(type);
  return !keys && found !== undefined && holds(dtypeOfType(found));
}
