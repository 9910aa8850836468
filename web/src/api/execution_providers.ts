// Which of a file's plans a page runs: that of the first provider of the list that there is here.
import { elsewhere, providers, sides } from 'virtual:build';
import { CORE_PROVIDER } from '../contract/providers';
import { capability, type OpenDevice } from '../device/module';
import type { GivenOptions, ProviderOptions } from '../device/options';
import { ErrorCode } from '../schema';
import { invalid, messageOf, RuntimeError } from '../errors';
import type { FindPart, Package } from '../package/package';
import { providerNamed, type Runtime } from '../session/runtime';
import type { EngineRequest } from './engine';
import { type ExecutionProvider, type ExternalFile, hasDevice, nameOf, type PageDevice } from './providers';

/** Providers of onnxruntime that are none of ours. */
const OTHERS = ['qnn', 'coreml', 'cuda', 'dml', 'nnapi', 'tensorrt', 'xnnpack'];

export interface Choice {
  readonly number: number;
  /** The provider on whose device it is. */
  readonly onDevice: string | undefined;
  readonly providerOptions: ProviderOptions;
}

export async function choosePlan(
  model: Package,
  runtime: Runtime,
  { executionProviders, providerOptions, freeDimensions }: EngineRequest,
): Promise<Choice> {
  const why: string[] = [];
  if (executionProviders.length === 0) {
    const names = providers.map((name) => `"${name}"`);
    throw invalid(`executionProviders is empty: name one or several of ${names.join(', ')}`);
  }
  for (const each of executionProviders) {
    const name = nameOf(each);
    if (!providers.includes(name)) {
      if (elsewhere.includes(name)) why.push(`${name}: this build of py_ort is without it; import py-ort-web/${name}`);
      else if (OTHERS.includes(name)) why.push(`${name}: py_ort has no such provider in a page`);
      else throw invalid(`there is no execution provider "${name}"`);
      continue;
    }
    const number = model.find(hasDevice(each) ? [name, CORE_PROVIDER] : [name], freeDimensions);
    if (number === undefined) {
      why.push(`${name}: the model was exported without it (py-ort export --provider ${name})`);
      continue;
    }
    const own = optionsOf(each, providerOptions);
    if (hasDevice(each)) {
      try {
        await deviceFor(name, own, runtime);
      } catch (error) {
        if (!(error instanceof RuntimeError && error.code === ErrorCode.no_adapter)) throw error;
        why.push(`${name}: ${messageOf(error)}`);
        continue;
      }
    }
    if (why.length > 0) runtime.log(2, 'session', `left out: ${why.join('; ')}`);
    return {
      number,
      providerOptions: { ...providerOptions, [name]: own },
      onDevice: hasDevice(each) ? name : undefined,
    };
  }
  throw new RuntimeError(ErrorCode.no_adapter, `no execution provider is available: ${why.join('; ')}`);
}

/** The device of a session that is asked for, in this thread. */
export function deviceOf(request: EngineRequest, runtime: Runtime): Promise<OpenDevice> {
  const { executionProviders, providerOptions } = request;
  const asked = executionProviders.filter(hasDevice).find(takesDevices) ?? providerNamed().name;
  return deviceFor(nameOf(asked), optionsOf(asked, providerOptions), runtime);
}

/** Has sessions of this thread take a device of the page's own. */
export function giveDevice(
  { executionProviders, providerOptions }: EngineRequest,
  runtime: Runtime,
  { provider, source }: PageDevice,
): void {
  const asked = executionProviders.find((each) => nameOf(each) === provider) ?? provider;
  const { deviceId } = providerNamed(provider).settings(optionsOf(asked, providerOptions));
  const devices = runtime.devices(provider);
  capability(devices.offer, provider, 'devices that pages give').call(devices, deviceId, source);
}

/** Whether it knows what to do with a device of the page's own: the side of it that is always there says so. */
function takesDevices(provider: ExecutionProvider): boolean {
  return Object.hasOwn(sides, nameOf(provider));
}

function optionsOf(provider: ExecutionProvider, common: ProviderOptions): GivenOptions {
  const { name: _, ...own } = typeof provider === 'string' ? { name: provider } : provider;
  return { ...common[nameOf(provider)], ...own };
}

async function deviceFor(name: string, options: GivenOptions, runtime: Runtime): Promise<OpenDevice> {
  const provider = providerNamed(name);
  const { deviceId, device } = provider.settings(options);
  return runtime.devices(provider.name).open(deviceId, device);
}

/** Finds further files among those that the page gave; undefined: beside the model's URL. */
export function partOf(externalData: readonly ExternalFile[] | undefined): FindPart | undefined {
  if (!externalData) return undefined;
  return (name) => {
    const found = externalData.find(({ path }) => path === name || path === `./${name}`);
    if (!found) {
      const given = externalData.map(({ path }) => path).join(', ') || 'none';
      throw invalid(`the model goes on in the file ${name}, which externalData does not have: it has ${given}`);
    }
    return found.data;
  };
}
