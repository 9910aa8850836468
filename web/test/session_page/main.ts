// A page without Python's session: window.session has the parts of Session that tests/page needs, with tensors as
// base64.
import { DType } from '../../src/schema';
import { dtypeOf, typeName } from '../../src/contract/elements';
import type { DTypeName } from '../../src/contract/kernel';
import type { WebGpuDevice } from '../../src/providers/webgpu/open_device';
import { Runtime } from '../../src/session/runtime';
import { ofUrls } from '../../src/session/model_source';
import { Session } from '../../src/session/session';
import type { Tensor } from '../../src/wire/values';
import type { Feeds } from '../../src/session/feeds';
import type { CoreModule } from '../../src/core/module';
import type { Timed } from '../../src/timeline';
import { pageStats } from '../../src/page/stats';
import { fromBase64, toBase64 } from '../base64';

interface TensorJson {
  dtype: DTypeName;
  dims: number[];
  data?: string;
  gpuId?: number;
}

const runtime = new Runtime();
const sessions = new Map<number, Session>();

async function load(plan: string, weights: string) {
  const session = await Session.load(ofUrls(plan, weights), {
    runtime,
    providerOptions: { webgpu: { validationMode: 'full' } },
  });
  sessions.set(session.handle, session);
  return { id: session.handle, info: session.info };
}

async function run(
  id: number,
  feeds: { [name: string]: TensorJson },
  outputsOnGpu: string[] = [],
  cancelAfter: number | null = null,
  profile?: Timed | null,
) {
  const tensors: Feeds = Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, toTensor(feed)]));
  const abort = new AbortController();
  if (cancelAfter !== null) setTimeout(() => abort.abort(), cancelAfter);
  const options = { outputsOnGpu, signal: abort.signal, profile: profile ?? undefined };
  const { outputs, info } = await sessions.get(id)!.run(tensors, options);
  return {
    outputs: Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, toJson(tensor as Tensor)])),
    info,
  };
}

async function release(id: number) {
  await sessions.get(id)!.release();
  sessions.delete(id);
}

const device = async () => (await runtime.devices('webgpu').open(0)) as WebGpuDevice;

async function loseDevice() {
  const { gpu } = await device();
  gpu.device.destroy();
  await gpu.device.lost;
}

async function shaders() {
  const { pipelines } = await device();
  return pipelines.list().map(({ key, compileMs }) => ({ key, compile_ms: compileMs }));
}

/** Compiles a shader with an error in its second line. */
async function compileNonsense() {
  const { pipelines } = await device();
  const shader = { name: 'nonsense__any', wgsl: () => '@compute @workgroup_size(1) fn main() {\n  y[0] = nobody;\n}' };
  await pipelines
    .get({ shader, spec: {}, bindings: [{ name: 'y', type: 'f32', writable: true }], uniforms: [] })
    .compile();
}

/** Makes an error that no error scope catches. */
async function provokeGpuError() {
  const { gpu } = await device();
  gpu.device.createBuffer({ label: 'provoked', size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  await gpu.device.queue.onSubmittedWorkDone();
}

/** Starts runs and destroys the device meanwhile; returns their outcomes. */
async function loseDeviceMeanwhile(id: number, feeds: { [name: string]: TensorJson }, count: number) {
  const runs = Array.from({ length: count }, () => run(id, feeds));
  await Promise.resolve();
  await loseDevice();
  const settled = await Promise.allSettled(runs);
  return settled.map((result) => {
    if (result.status === 'fulfilled') return 'done';
    return (result.reason as { code?: number }).code ?? String(result.reason);
  });
}

/** Makes the core read past the end of its memory, even during a run. */
async function crash() {
  const { core } = await runtime.core();
  (core as unknown as { module: CoreModule }).module._ort_crc32(0, 0, 0xffffffff);
}

function toTensor({ dtype, dims, data, gpuId }: TensorJson): Tensor {
  if (gpuId !== undefined) return { dtype: dtypeOf(dtype), dims, gpuId };
  return { dtype: dtypeOf(dtype), dims, data: fromBase64(data!) };
}

function toJson(tensor: Tensor): TensorJson {
  const [dtype, dims] = [
    (tensor.dtype === DType.undefined ? 'float32' : typeName(tensor.dtype)) as DTypeName,
    [...tensor.dims],
  ];
  return 'gpuId' in tensor ? { dtype, dims, gpuId: tensor.gpuId } : { dtype, dims, data: toBase64(tensor.data) };
}

/** Errors lose their fields on the way to Python: the code is added to the text. */
const told =
  <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
  async (...args: A) => {
    try {
      return { value: await call(...args) };
    } catch (error) {
      const { code, message, stack, place } = error as {
        code?: number;
        message: string;
        stack?: string;
        place?: object;
      };
      return { error: { code: code ?? 1, message, stack, place } };
    }
  };

Object.assign(globalThis, {
  session: {
    load: told(load),
    run: told(run),
    release: told(release),
    stats: told(() => pageStats(runtime, sessions)),
    shaders: told(shaders),
    loseDevice: told(loseDevice),
    compileNonsense: told(compileNonsense),
    provokeGpuError: told(provokeGpuError),
    crash: told(crash),
    loseDeviceMeanwhile: told(loseDeviceMeanwhile),
  },
});
