// Where a session leaves its outputs: `preferredOutputLocation`.
import { hasGpuForm } from '../contract/elements';
import type { NodeArgEntry } from '../package/header';
import { named } from '../wire/values';
import { dtypeOfType, typeInOnnx } from './elements';
import { invalid } from '../errors';
import { capability } from '../device/module';
import type { Engine } from './engine';
import { hasDevice } from './providers';
import type { InferenceSessionOptions } from './session_options';

type Locations = InferenceSessionOptions['preferredOutputLocation'];

/** Throws invalid_argument for what is no location, and for outputs that are none or cannot be there. */
export function checkLocations({ description, keeper }: Engine, locations: Locations): void {
  const given = typeof locations === 'object' ? locations : { '': locations ?? 'cpu' };
  for (const [name, location] of Object.entries(given)) {
    if (location !== 'cpu' && location !== 'gpu-buffer') {
      throw invalid(`preferredOutputLocation is "cpu" or "gpu-buffer", not "${String(location)}"`);
    }
    const output = description.outputs.find((one) => one.name === name);
    if (name && !output) throw invalid(`preferredOutputLocation: the model has no output "${name}"`);
    if (location === 'cpu') continue;
    if (!keeper) {
      const [first] = description.providers;
      if (hasDevice(first)) capability(keeper, first, 'tensors that pages hold');
      throw invalid('preferredOutputLocation: no node of this model runs on a GPU');
    }
    if (output && !fits(output))
      throw invalid(`preferredOutputLocation: output "${name}" is ${output.type}, which has no form on the GPU`);
  }
}

/** Which of these outputs go to the GPU. Where all shall go, those that cannot be there stay away. */
export function onGpuAmong(names: readonly string[], { description }: Engine, locations: Locations): string[] {
  return names.filter((name) => {
    if (typeof locations === 'object') return named(locations, name) === 'gpu-buffer';
    return locations === 'gpu-buffer' && description.outputs.some((one) => one.name === name && fits(one));
  });
}

function fits({ type, keys }: NodeArgEntry): boolean {
  const found = typeInOnnx(type);
  return !keys && found !== undefined && hasGpuForm(dtypeOfType(found));
}
