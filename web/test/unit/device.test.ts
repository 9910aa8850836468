// Opens a device in a browser whose GPU process does not answer, or answers only with an adapter on the CPU.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openGpu, subgroupMatrixOf } from '../../src/providers/webgpu/device';
import { RuntimeError } from '../../src/errors';
import { ErrorCode } from '../../src/schema';

type Info = Partial<Record<'vendor' | 'architecture' | 'device' | 'description', string>> & {
  isFallbackAdapter?: boolean;
};
interface Answers {
  adapter?: Promise<unknown>;
  device?: Promise<unknown>;
  pipeline?: Promise<unknown>;
  info?: Info;
}

const NEVER = new Promise<never>(() => undefined);

/** A browser with these answers. */
function browser({ adapter, device, pipeline = Promise.resolve({}), info = {} }: Answers): GPUAdapter {
  const opened = {
    limits: {},
    features: new Set(),
    lost: NEVER,
    addEventListener: () => undefined,
    destroy: () => undefined,
    createShaderModule: () => ({}),
    createComputePipelineAsync: () => pipeline,
  };
  const found = {
    limits: {},
    features: new Set(),
    requestDevice: () => device ?? Promise.resolve(opened),
    info: { vendor: '', architecture: '', device: '', description: '', ...info },
  };
  const gpu = { requestAdapter: () => adapter ?? Promise.resolve(found) };
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { gpu } });
  return found as unknown as GPUAdapter;
}

async function errorOf(...options: Parameters<typeof openGpu>): Promise<RuntimeError> {
  try {
    await openGpu(...options);
  } catch (error) {
    assert.ok(error instanceof RuntimeError);
    return error;
  }
  throw new assert.AssertionError({ message: 'a device was opened' });
}

const STEPS: [keyof Answers, string][] = [
  ['adapter', 'requestAdapter'],
  ['device', 'requestDevice'],
  ['pipeline', 'createComputePipelineAsync'],
];

for (const [step, name] of STEPS) {
  test(`a browser that never answers ${name} is not waited for`, async () => {
    let answer = (_: unknown): void => undefined;
    browser({ [step]: new Promise((resolve) => (answer = resolve)) });
    const error = await errorOf({ timeoutMs: 50 });
    assert.equal(error.code, ErrorCode.no_adapter);
    assert.match(error.message, new RegExp(`${name}.* within 0.05 s`));
    // The next one does not wait as long again, while the step hangs.
    const began = performance.now();
    assert.match((await errorOf({ timeoutMs: 60_000 })).message, new RegExp(name));
    assert.ok(performance.now() - began < 30_000);
    // A late answer ends that.
    answer(null);
    await new Promise((resolve) => setTimeout(resolve));
    browser({});
    await openGpu({ timeoutMs: 1000 });
  });
}

const SOFTWARE: Info[] = [
  { vendor: 'google', architecture: 'swiftshader' },
  { vendor: 'mesa', description: 'llvmpipe (LLVM 15.0.6, 256 bits)' },
  { vendor: 'mesa', architecture: 'software-rasterizer' },
  { description: 'Microsoft Basic Render Driver' },
  { isFallbackAdapter: true },
];

for (const info of SOFTWARE) {
  test(`${JSON.stringify(info)} is no GPU`, async () => {
    const adapter = browser({ info });
    assert.ok((await openGpu()).description.software);
    // Passed, so that the test does not wait for another one.
    const error = await errorOf({ hardware: 'required' }, adapter);
    assert.equal(error.code, ErrorCode.no_adapter);
    assert.match(
      error.message,
      new RegExp(`software adapter.*${(info.description ?? info.architecture ?? 'unnamed').slice(0, 8)}`),
    );
    await openGpu({ hardware: 'required', forceFallbackAdapter: true });
  });
}

test('hardware is hardware', async () => {
  browser({ info: { vendor: 'nvidia', architecture: 'hopper', description: 'NVIDIA H100' } });
  assert.ok(!(await openGpu({ hardware: 'required' })).description.software);
});

const CONFIGS = [
  { componentType: 'f16', resultComponentType: 'f16', M: 16, N: 16, K: 16 },
  { componentType: 'f16', resultComponentType: 'f32', M: 16, N: 8, K: 8 },
  { componentType: 'f16', resultComponentType: 'f32', M: 16, N: 16, K: 16 },
  { componentType: 'f16', resultComponentType: 'f32', M: 64, N: 64, K: 64 },
  { componentType: 'i8', resultComponentType: 'i32', M: 16, N: 16, K: 32 },
];
const MATRICES = new Set(['chromium-experimental-subgroup-matrix', 'shader-f16']);

test('of subgroup matrices the largest that fit a tile are taken', () => {
  const one = { subgroupMinSize: 32, subgroupMaxSize: 32, subgroupMatrixConfigs: CONFIGS };
  assert.deepEqual(subgroupMatrixOf(MATRICES, one), { m: 16, n: 16, k: 16, subgroup: 32 });
  assert.equal(subgroupMatrixOf(new Set(['shader-f16']), one), undefined);
  assert.equal(subgroupMatrixOf(MATRICES, { ...one, subgroupMinSize: 16 }), undefined);
  assert.equal(subgroupMatrixOf(MATRICES, { ...one, subgroupMatrixConfigs: CONFIGS.slice(0, 1) }), undefined);
  assert.equal(subgroupMatrixOf(MATRICES, {}), undefined);
});

test('subgroup matrices are asked for only if they are wanted, and there', async () => {
  const asked: unknown[] = [];
  const adapter = browser({}) as unknown as {
    features: Set<string>;
    requestDevice: (wanted: { requiredFeatures: string[] }) => Promise<unknown>;
  };
  const { requestDevice } = adapter;
  adapter.requestDevice = (wanted) => {
    asked.push(wanted.requiredFeatures);
    return requestDevice(wanted);
  };
  await openGpu({ subgroupMatrix: true });
  adapter.features = MATRICES;
  await openGpu();
  await openGpu({ subgroupMatrix: true });
  assert.deepEqual(asked, [[], ['shader-f16'], ['shader-f16', 'chromium-experimental-subgroup-matrix']]);
});
