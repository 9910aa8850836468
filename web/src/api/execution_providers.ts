// Which of a file's plans a page runs: that of the first provider of the list that there is here.
import { providers } from 'virtual:build';
import { ErrorCode } from '../schema';
import { invalid, messageOf, RuntimeError } from '../errors';
import type { GivenOptions } from '../device/options';
import { webGpuSettings } from '../providers/webgpu/options';
import type { GpuProvider } from '../providers/webgpu/provider';
import type { FindPart, Package } from '../package/package';
import type { Runtime } from '../session/runtime';
import type { EngineRequest } from './engine';
import { type ExternalFile, isWebGpu } from './providers';

/** Providers of others that are not here, and what is. */
const ELSEWHERE = ['webgl', 'webnn', 'qnn', 'coreml', 'cuda', 'dml', 'nnapi', 'tensorrt', 'xnnpack'];

export interface Choice {
  readonly number: number;
  /** Whether it is WebGPU's. */
  readonly onDevice: boolean;
  readonly webgpu: GivenOptions;
}

export async function choosePlan(
  model: Package,
  runtime: Runtime,
  { executionProviders, webgpu: common, freeDimensions }: EngineRequest,
): Promise<Choice> {
  const why: string[] = [];
  if (executionProviders.length === 0) throw invalid('executionProviders is empty: name "webgpu", "wasm" or both');
  for (const each of executionProviders) {
    const { name: given, ...options } = typeof each === 'string' ? { name: each } : each;
    const name: string = given === 'cpu' ? 'wasm' : given;
    if (ELSEWHERE.includes(name)) {
      why.push(`${name}: py_ort has no such provider in a page`);
      continue;
    }
    if (name !== 'webgpu' && name !== 'wasm') throw invalid(`there is no execution provider "${name}"`);
    if (!providers.includes(name)) {
      why.push(`${name}: this build of py_ort has it not; import py-ort-web without /wasm`);
      continue;
    }
    const number = model.find(name === 'webgpu' ? ['webgpu', 'wasm'] : ['wasm'], freeDimensions);
    if (number === undefined) {
      why.push(`${name}: the model was exported without it (py-ort export --provider ${name})`);
      continue;
    }
    const webgpu = { ...common, ...(name === 'webgpu' ? options : {}) } as GivenOptions;
    if (name === 'webgpu') {
      try {
        await deviceFor(webgpu, runtime);
      } catch (error) {
        if (!(error instanceof RuntimeError && error.code === ErrorCode.no_adapter)) throw error;
        why.push(`${name}: ${messageOf(error)}`);
        continue;
      }
    }
    if (why.length > 0) runtime.log(2, 'session', `left out: ${why.join('; ')}`);
    return { number, webgpu, onDevice: name === 'webgpu' };
  }
  throw new RuntimeError(ErrorCode.no_adapter, `no execution provider is available: ${why.join('; ')}`);
}

/** The device of a session that is asked for, in this thread. */
export function deviceOf({ executionProviders, webgpu }: EngineRequest, runtime: Runtime): Promise<GpuProvider> {
  const named = executionProviders.find(isWebGpu);
  const { name: _, ...options } = typeof named === 'object' ? named : { name: '' };
  return deviceFor({ ...webgpu, ...options } as GivenOptions, runtime);
}

async function deviceFor(webgpu: GivenOptions, runtime: Runtime): Promise<GpuProvider> {
  const { deviceId, device } = webGpuSettings(webgpu);
  return runtime.device(deviceId, device);
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
