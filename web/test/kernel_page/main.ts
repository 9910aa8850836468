// A page for kernel tests without Python's session and without the core: window.runKernel(case) -> outputs and times.
import { Attributes, type AttributeRecord } from '../../src/contract/attributes';
import { cpuElementSize, dtypeOf, elementCount, typeName } from '../../src/contract/elements';
import type { DeviceTraits, DTypeName } from '../../src/contract/kernel';
import { findKernel } from '../../src/providers/webgpu/registry';
import type { SingleInput } from '../../src/device/single';
import { prepareSingle } from '../../src/providers/webgpu/single';
import { shaderKey, type ShaderRequest, shaderText } from '../../src/providers/webgpu/shader';
import { gpuError, inErrorScopes } from '../../src/providers/webgpu/scopes';
import type { Pipeline } from '../../src/providers/webgpu/pipelines';
import { GpuProvider } from '../../src/providers/webgpu/provider';
import { fromBase64, toBase64 } from '../base64';
import { withoutMatrices } from './subgroup_matrices';

interface TensorJson {
  dtype: DTypeName;
  dims: number[];
  /** Base64 of the elements, in the CPU's form. */
  data: string;
}

interface Case {
  op: string;
  domain?: string;
  attributes?: AttributeRecord;
  /** A number: the same tensor as that input. */
  inputs: (TensorJson | number | null)[];
  /** Indices of the host inputs. */
  host?: number[];
  /** True for each wanted output; one by default. */
  outputs?: boolean[];
  /** Use the variants for hardware, whatever the adapter is. */
  hardware?: boolean;
  /** Traits of a weaker device, e.g. {maxStorageBindingSize: 4096}. */
  traits?: Partial<DeviceTraits>;
  /** Number of runs for the median; 0: one run, untimed. */
  repeat?: number;
}

interface Result {
  outputs: (TensorJson | null)[];
  shaders: string[];
  /** Milliseconds of one run inside a batch, without upload and download. */
  median_ms?: number;
  compile_ms: number;
}

let provider: Promise<GpuProvider> | undefined;

/** The text of each key. */
const texts = new Map<string, string>();

/** New requests, not checked yet. */
let asked: ShaderRequest[] = [];

/**
 * The provider, with a cache that checks that a shader's text depends only on its key: not on the device, nor on a
 * shape.
 */
async function openProvider(): Promise<GpuProvider> {
  const made = await GpuProvider.open();
  const { pipelines } = made;
  const get = pipelines.get.bind(pipelines);
  pipelines.get = (request) => {
    const [key, text] = [shaderKey(request), shaderText(request)];
    if ((texts.get(key) ?? text) !== text)
      throw new Error(`two shaders for one key, ${key}:\n${texts.get(key)}\n${text}`);
    if (!texts.has(key)) asked.push(request);
    texts.set(key, text);
    return get(request);
  };
  return made;
}

async function runKernel(test: Case): Promise<Result> {
  const open = await (provider ??= openProvider());
  const used =
    test.hardware || test.traits
      ? pretending(open, { ...(test.hardware && { software: false, slowCompiler: false }), ...test.traits })
      : open;
  const result = await inErrorScopes(open.gpu, () => runCase(used, test));
  const uncaptured = open.gpu.takeUncaptured();
  if (uncaptured.length > 0) throw gpuError(uncaptured);
  await throwWarnings(open);
  await throwUnlessReadWrite(open);
  return result;
}

/**
 * The memory plan may declare all bindings read_write. To a compiler their values then are not uniform, and barriers
 * must not depend on them.
 */
async function throwUnlessReadWrite({ gpu }: GpuProvider): Promise<void> {
  const requests = asked;
  asked = [];
  for (const request of requests) {
    const code = shaderText({
      ...request,
      bindings: request.bindings.map((binding) => ({ ...binding, writable: true })),
    });
    if (!code.includes('workgroupBarrier')) continue;
    gpu.device.pushErrorScope('validation');
    const { messages } = await gpu.device.createShaderModule({ code }).getCompilationInfo();
    await gpu.device.popErrorScope();
    const errors = messages.filter(({ type }) => type === 'error').map(({ message }) => message);
    if (errors.length > 0)
      throw new Error(`shader ${request.shader.name} with read_write bindings: ${errors.join('\n')}`);
  }
}

const looked = new Set<Pipeline>();

/** Compilers warn of barriers in non-uniform control flow, for example: all warnings must be fixed. */
async function throwWarnings({ pipelines }: GpuProvider): Promise<void> {
  for (const pipeline of pipelines.list()) {
    if (looked.has(pipeline)) continue;
    looked.add(pipeline);
    const warnings = await pipeline.warnings();
    if (warnings.length > 0) throw new Error(`shader ${pipeline.label}: ${warnings.join('\n')}`);
  }
}

/** The same provider, but with other traits for kernels than its device's. */
function pretending(provider: GpuProvider, traits: Partial<DeviceTraits>): GpuProvider {
  const gpu = Object.create(provider.gpu, { traits: { value: { ...provider.gpu.traits, ...traits } } });
  const { subgroupMatrix } = traits;
  const pipelines = Object.create(provider.pipelines, {
    get: {
      value: (request: ShaderRequest) =>
        provider.pipelines.get({ ...request, shader: withoutMatrices(request.shader, subgroupMatrix!) }),
    },
  });
  return Object.create(provider, { gpu: { value: gpu }, ...(subgroupMatrix && { pipelines: { value: pipelines } }) });
}

async function runCase(open: GpuProvider, test: Case): Promise<Result> {
  const { gpu, buffers } = open;
  const kernel = findKernel(test.op, test.domain);
  const attributes = kernel.attributes?.(new Attributes(test.attributes ?? {}));
  const inputs: (SingleInput | undefined)[] = [];
  test.inputs.forEach((input, i) => {
    inputs.push(
      typeof input === 'number'
        ? inputs[input]
        : input
          ? makeInput(open, input, test.host?.includes(i) ?? false)
          : undefined,
    );
  });
  const before = performance.now();
  const call = await prepareSingle(open, kernel, attributes, inputs, test.outputs ?? [true]);
  const compile_ms = performance.now() - before;
  const submit = (times: number) => {
    let encoder = gpu.device.createCommandEncoder();
    for (let i = 0; i < times; i++) encoder = call.segment.encode(encoder);
    gpu.submit([encoder.finish()]);
  };
  submit(1);
  const outputs: (TensorJson | null)[] = [];
  for (const output of call.outputs) {
    if (!output) {
      outputs.push(null);
      continue;
    }
    const bytes = await open.read(output.gpuId, elementCount(output.dims) * gpu.elements.size(output.dtype));
    outputs.push({
      dtype: typeName(output.dtype) as DTypeName,
      dims: [...output.dims],
      data: toBase64(gpu.elements.narrow(output.dtype, bytes)),
    });
  }
  const median_ms = test.repeat ? await measure(open, submit, test.repeat) : undefined;
  call.destroy();
  for (const output of call.outputs) if (output) buffers.free(output.gpuId);
  for (const input of new Set(inputs)) if (input && 'gpuId' in input.data) buffers.free(input.data.gpuId);
  return { outputs, shaders: [...call.labels], median_ms, compile_ms };
}

/**
 * The median over `repeat` batches. A batch has as many runs as fit into about 50 ms, so that the wait for the queue
 * matters little.
 */
async function measure(open: GpuProvider, submit: (times: number) => void, repeat: number): Promise<number> {
  const time = async (batch: number) => {
    const start = performance.now();
    submit(batch);
    await open.gpu.device.queue.onSubmittedWorkDone();
    return (performance.now() - start) / batch;
  };
  const batch = Math.max(1, Math.min(100, Math.floor(50 / (await time(1)))));
  const times: number[] = [];
  for (let i = 0; i < repeat; i++) times.push(await time(batch));
  return times.sort((a, b) => a - b)[times.length >> 1];
}

function makeInput(open: GpuProvider, { dtype: name, dims, data }: TensorJson, host: boolean): SingleInput {
  const dtype = dtypeOf(name);
  const bytes = fromBase64(data);
  if (bytes.byteLength !== elementCount(dims) * cpuElementSize(dtype)!)
    throw new Error(`${name}[${dims}] has ${bytes.byteLength} bytes`);
  if (host) return { dtype, dims, data: { bytes } };
  const wide = open.gpu.elements.widen(dtype, bytes);
  const gpuId = open.buffers.allocate(wide.byteLength, open.caches.storage, 'input');
  open.gpu.write(open.buffers.get(gpuId).buffer, 0, wide);
  return { dtype, dims, data: { gpuId } };
}

Object.assign(globalThis, {
  runKernel,
  describeDevice: async () => (await (provider ??= openProvider())).gpu.description,
});
