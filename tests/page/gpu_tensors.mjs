// GPU tensors as onnxruntime-web documents them: each case runs on either engine, ?module and ?model say which.
import { equal, fails, outcomesOf } from './javascript_checks.mjs';

const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const { env, InferenceSession, Tensor } = await import(new URL(query.get('module'), location.href));
// The page and its sessions share a device, the default of onnxruntime-web.
env.wasm.proxy = false;
env.wasm.numThreads = 1;

const create = (options) => InferenceSession.create(query.get('model'), { executionProviders: ['webgpu'], ...options });
const scale = new Tensor('float32', [10, 20, 30], [3]);
const x = () => new Tensor('float32', [1, 2, 3], [1, 3]);

/** A buffer as the documentation requires: these usages, its size in steps of 16 bytes. */
function bufferOn(device, values, bytes = 4 * values.length) {
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  const buffer = device.createBuffer({ size: Math.ceil(bytes / 16) * 16, usage: STORAGE | COPY_SRC | COPY_DST });
  device.queue.writeBuffer(buffer, 0, Float32Array.from(values));
  return buffer;
}

async function contentsOf(device, buffer, count) {
  const read = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, read, 0, 16);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(read.getMappedRange().slice(0), 0, count);
  read.destroy();
  return values;
}

const cases = {
  'fed, one input on the GPU and one on the CPU': async () => {
    const session = await create();
    const device = await env.webgpu.device;
    const buffer = bufferOn(device, [1, 2, 3]);
    const feed = Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [1, 3] });
    equal([feed.location, feed.type, ...feed.dims], ['gpu-buffer', 'float32', 1, 3]);
    if (feed.gpuBuffer !== buffer) throw new Error('another buffer');
    for (const more of [0, 5]) {
      device.queue.writeBuffer(buffer, 0, Float32Array.from([1 + more, 2 + more, 3 + more]));
      const { y } = await session.run({ x: feed, scale });
      equal([y.location], ['cpu']);
      equal(y.data, [11 + more, 22 + more, 33 + more]);
    }
    // A feed stays the page's.
    equal(await contentsOf(device, buffer, 3), [6, 7, 8]);
    buffer.destroy();
    await session.release();
  },

  preallocated: async () => {
    const session = await create();
    const device = await env.webgpu.device;
    const buffer = bufferOn(device, [0, 0, 0]);
    const target = Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [1, 3] });
    for (let round = 0; round < 3; round++) {
      const { y } = await session.run({ x: x(), scale }, { y: target });
      equal([y.location, ...y.dims], ['gpu-buffer', 1, 3]);
      equal(await contentsOf(device, buffer, 3), [11, 22, 33]);
    }
    // An output is the next input.
    const { y } = await session.run({ x: target, scale });
    equal(y.data, [21, 42, 63]);
    await session.release();
  },

  'preferred location, for all outputs and by name': async () => {
    for (const preferredOutputLocation of ['gpu-buffer', { y: 'gpu-buffer' }]) {
      const session = await create({ preferredOutputLocation });
      const { y } = await session.run({ x: x(), scale });
      equal([y.location, y.type, y.size, ...y.dims], ['gpu-buffer', 'float32', 3, 1, 3]);
      await fails(() => y.data, '.');
      equal(await contentsOf(await env.webgpu.device, y.gpuBuffer, 3), [11, 22, 33]);
      y.dispose();
      await session.release();
    }
    const session = await create({ preferredOutputLocation: 'cpu' });
    equal([(await session.run({ x: x(), scale })).y.location], ['cpu']);
    await session.release();
  },

  'from run to run and from session to session': async () => {
    const [first, second] = [
      await create({ preferredOutputLocation: 'gpu-buffer' }),
      await create({ preferredOutputLocation: 'gpu-buffer' }),
    ];
    let { y } = await first.run({ x: x(), scale });
    for (const session of [second, first, second]) {
      const next = await session.run({ x: y, scale });
      y.dispose();
      y = next.y;
    }
    equal(await y.getData(), [41, 82, 123]);
    y.dispose();
    await first.release();
    await second.release();
  },

  getData: async () => {
    const session = await create({ preferredOutputLocation: 'gpu-buffer' });
    const { y } = await session.run({ x: x(), scale });
    equal(await y.getData(), [11, 22, 33]);
    // It is on the CPU from then on.
    equal([y.location, ...y.data], ['cpu', 11, 22, 33]);
    const { y: released } = await session.run({ x: x(), scale });
    equal(await released.getData(true), [11, 22, 33]);
    equal([released.location], ['cpu']);
    const { y: both } = await session.run({ x: x(), scale });
    const [one, other] = [both.getData(), await both.getData().catch((error) => error)];
    equal(await one, [11, 22, 33]);
    if (!(other instanceof Error)) equal(other, [11, 22, 33]);
    await session.release();
  },

  'getData and dispose of a buffer of the page': async () => {
    const session = await create();
    const device = await env.webgpu.device;
    const buffer = bufferOn(device, [7, 8, 9]);
    const done = [];
    const options = {
      dataType: 'float32',
      dims: [3],
      download: async () => {
        done.push('download');
        return contentsOf(device, buffer, 3);
      },
      dispose: () => done.push('dispose'),
    };
    const tensor = Tensor.fromGpuBuffer(buffer, options);
    equal(await tensor.getData(), [7, 8, 9]);
    equal(await tensor.getData(), [7, 8, 9]);
    equal(done, ['download']);
    const again = Tensor.fromGpuBuffer(buffer, options);
    again.dispose();
    equal(done, ['download', 'dispose']);
    await fails(() => again.gpuBuffer, '.');
    await fails(() => again.getData(), '.');
    equal(await contentsOf(device, buffer, 3), [7, 8, 9]);
    await session.release();
  },

  dispose: async () => {
    const session = await create({ preferredOutputLocation: 'gpu-buffer' });
    const { y } = await session.run({ x: x(), scale });
    y.dispose();
    await fails(() => y.data, '.');
    await fails(() => y.gpuBuffer, '.');
    await fails(() => y.getData(), '.');
    await fails(() => session.run({ x: y, scale }), '.');
    // The session still works.
    const { y: next } = await session.run({ x: x(), scale });
    equal(await next.getData(true), [11, 22, 33]);
    await session.release();
  },
};

await tell({ outcomes: await outcomesOf(cases) });
