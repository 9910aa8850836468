// Chooses the plan of a file that a page runs: the plan of the first provider in the list that is available.
import { elsewhere, providers, sides } from 'virtual:build';
import { CORE_PROVIDER } from '../contract/providers';
import { capability, type OpenDevice } from '../device/module';
import type { GivenOptions, ProviderOptions } from '../device/options';
import { ErrorCode } from '../schema';
import { invalid, messageOf, RuntimeError } from '../errors';
import type { FindPart, Package } from '../package/package';
import { isLoaded, loadProvider } from '../session/late_providers';
import { providerNamed, type Runtime } from '../session/runtime';
import type { EngineRequest } from './engine';
import { type ExecutionProvider, type ExternalFile, hasDevice, nameOf, type PageDevice } from './providers';

/** For sessions that name no provider, best first, as in onnxruntime-web. */
const DEFAULTS: readonly ExecutionProvider[] = [CORE_PROVIDER, ...providers.filter(hasDevice)];
/** Providers of onnxruntime that py_ort does not have. */
const OTHERS = ['qnn', 'coreml', 'cuda', 'dml', 'nnapi', 'tensorrt', 'xnnpack'];

export interface Choice {
  readonly number: number;
  /** The provider whose device it uses. */
  readonly onDevice: string | undefined;
  readonly providerOptions: ProviderOptions;
}

export async function choosePlan(
  model: Package,
  runtime: Runtime,
  { executionProviders, providerOptions, freeDimensions }: EngineRequest,
): Promise<Choice> {
  const asked = executionProviders.length > 0;
  const leftOut: string[] = [];
  let choice: Choice | undefined;
  for (const each of asked ? namedOnce(executionProviders, leftOut, runtime) : DEFAULTS) {
    const name = nameOf(each);
    const options = optionsOf(each, providerOptions);
    const number = choice
      ? choice.number
      : model.find(hasDevice(each) ? [name, CORE_PROVIDER] : [name], freeDimensions);
    if (number === undefined) {
      leftOut.push(`${name}: the model was exported without it (py-ort export --provider ${name})`);
      continue;
    }
    const why = hasDevice(each) && (await withoutDevice(name, options, runtime, choice !== undefined));
    if (why) leftOut.push(`${name}: ${why}`);
    else
      choice ??= {
        number,
        providerOptions: { ...providerOptions, [name]: options },
        onDevice: hasDevice(each) ? name : undefined,
      };
    if (choice && !asked) break;
  }
  const reasons = leftOut.join('; ');
  if (!choice) throw new RuntimeError(ErrorCode.no_adapter, `no execution provider is available: ${reasons}`);
  if (asked && reasons) runtime.log(2, 'session', `left out: ${reasons}`);
  return choice;
}

/** The providers of this build in a list, each once. `leftOut` receives those of other builds and of onnxruntime. */
function namedOnce(list: readonly ExecutionProvider[], leftOut: string[], runtime: Runtime): ExecutionProvider[] {
  const found = new Map<string, ExecutionProvider>();
  for (const each of list) {
    const name = nameOf(each);
    if (found.has(name)) runtime.log(2, 'session', `provider ${name} is named twice: the first place counts`);
    else if (providers.includes(name)) found.set(name, each);
    else if (elsewhere.includes(name))
      leftOut.push(`${name}: this build of py_ort is without it; import py-ort-web/${name}`);
    else if (OTHERS.includes(name)) leftOut.push(`${name}: py_ort has no such provider in a page`);
    else throw invalid(`there is no execution provider "${name}"; there are ${providers.join(', ')}`);
  }
  return [...found.values()];
}

/**
 * The reason why a provider has no device here; undefined if it has one.
 *
 * @param closes true if the device closes again, because the session runs on another provider.
 */
async function withoutDevice(
  name: string,
  options: GivenOptions,
  runtime: Runtime,
  closes: boolean,
): Promise<string | undefined> {
  // No file is downloaded for a provider that the session does not use.
  if (closes && !isLoaded(name)) return undefined;
  try {
    await loadProvider(name, runtime.files);
    const { deviceId, device, preserveDevice } = providerNamed(name).settings(options);
    const devices = runtime.devices(name);
    if (closes) devices.leave(deviceId, await devices.enter(deviceId, device, preserveDevice));
    else await devices.open(deviceId, device);
    return undefined;
  } catch (error) {
    if (!(error instanceof RuntimeError && error.code === ErrorCode.no_adapter)) throw error;
    return messageOf(error);
  }
}

/** The device of a requested session, in this thread. */
export function deviceOf(request: EngineRequest, runtime: Runtime): Promise<OpenDevice> {
  const { executionProviders, providerOptions } = request;
  const asked = executionProviders.filter(hasDevice).find(takesDevices) ?? providerNamed().name;
  return deviceFor(nameOf(asked), optionsOf(asked, providerOptions), runtime);
}

/** Makes sessions of this thread use one of the page's own devices. */
export async function giveDevice(
  { executionProviders, providerOptions }: EngineRequest,
  runtime: Runtime,
  { provider, source }: PageDevice,
): Promise<void> {
  await loadProvider(provider, runtime.files);
  const asked = executionProviders.find((each) => nameOf(each) === provider) ?? provider;
  const { deviceId } = providerNamed(provider).settings(optionsOf(asked, providerOptions));
  const devices = runtime.devices(provider);
  capability(devices.offer, provider, 'devices that pages give').call(devices, deviceId, source);
}

/** True if the provider accepts the page's own devices, according to its PageSide, which is always loaded. */
function takesDevices(provider: ExecutionProvider): boolean {
  return Object.hasOwn(sides, nameOf(provider));
}

function optionsOf(provider: ExecutionProvider, common: ProviderOptions): GivenOptions {
  const { name: _, ...own } = typeof provider === 'string' ? { name: provider } : provider;
  return { ...common[nameOf(provider)], ...own };
}

async function deviceFor(name: string, options: GivenOptions, runtime: Runtime): Promise<OpenDevice> {
  await loadProvider(name, runtime.files);
  const provider = providerNamed(name);
  const { deviceId, device } = provider.settings(options);
  return runtime.devices(provider.name).open(deviceId, device);
}

/** Finds further files among those that the page passed; undefined: next to the model's URL. */
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
