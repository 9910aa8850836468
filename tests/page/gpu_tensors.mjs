// GPU tensors as onnxruntime-web documents them: each case runs on either engine, ?module and ?model say which.
import { bufferOn, contents, equal, fails, lasting, outcomesOf } from './javascript_checks.mjs';

const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const { env, InferenceSession, Tensor } = await import(new URL(query.get('module'), location.href));
// The page and its sessions share a device, the default of onnxruntime-web.
env.wasm.proxy = false;
env.wasm.numThreads = 1;

const create = (options) =>
  lasting(InferenceSession.create(query.get('model'), { executionProviders: ['webgpu'], ...options }));
const KEPT = { preferredOutputLocation: 'gpu-buffer' };
const scale = new Tensor('float32', [10, 20, 30], [3]);
const x = () => new Tensor('float32', [1, 2, 3], [1, 3]);

/** A buffer as the documentation requires: its size in steps of 16 bytes. */
const holding = (device, ...values) => bufferOn(device, Float32Array.of(...values, 0));
const contentsOf = (device, buffer) => contents(device, buffer, Float32Array, 3);

const cases = {
  'fed, one input on the GPU and one on the CPU': async () => {
    const session = await create();
    const device = await env.webgpu.device;
    const buffer = holding(device, 1, 2, 3);
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
    equal(await contentsOf(device, buffer), [6, 7, 8]);
    buffer.destroy();
  },

  preallocated: async () => {
    const session = await create();
    const device = await env.webgpu.device;
    const buffer = holding(device, 0, 0, 0);
    const target = Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [1, 3] });
    for (let round = 0; round < 3; round++) {
      const { y } = await session.run({ x: x(), scale }, { y: target });
      equal([y.location, ...y.dims], ['gpu-buffer', 1, 3]);
      equal(await contentsOf(device, buffer), [11, 22, 33]);
    }
    // An output is the next input.
    const { y } = await session.run({ x: target, scale });
    equal(y.data, [21, 42, 63]);
  },

  'preferred location, for all outputs and by name': async () => {
    for (const preferredOutputLocation of ['gpu-buffer', { y: 'gpu-buffer' }]) {
      const session = await create({ preferredOutputLocation });
      const { y } = await session.run({ x: x(), scale });
      equal([y.location, y.type, y.size, ...y.dims], ['gpu-buffer', 'float32', 3, 1, 3]);
      await fails(() => y.data, '.');
      equal(await contentsOf(await env.webgpu.device, y.gpuBuffer), [11, 22, 33]);
      y.dispose();
    }
    const session = await create({ preferredOutputLocation: 'cpu' });
    equal([(await session.run({ x: x(), scale })).y.location], ['cpu']);
  },

  'from run to run and from session to session': async () => {
    const [first, second] = [await create(KEPT), await create(KEPT)];
    let { y } = await first.run({ x: x(), scale });
    for (const session of [second, first, second]) {
      const next = await session.run({ x: y, scale });
      y.dispose();
      y = next.y;
    }
    equal(await y.getData(), [41, 82, 123]);
    y.dispose();
  },

  getData: async () => {
    const session = await create(KEPT);
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
  },

  'getData and dispose of a buffer of the page': async () => {
    await create();
    const device = await env.webgpu.device;
    const buffer = holding(device, 7, 8, 9);
    const done = [];
    const options = {
      dataType: 'float32',
      dims: [3],
      download: async () => {
        done.push('download');
        return contentsOf(device, buffer);
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
    equal(await contentsOf(device, buffer), [7, 8, 9]);
  },

  dispose: async () => {
    const session = await create(KEPT);
    const { y } = await session.run({ x: x(), scale });
    y.dispose();
    await fails(() => y.data, '.');
    await fails(() => y.gpuBuffer, '.');
    await fails(() => y.getData(), '.');
    await fails(() => session.run({ x: y, scale }), '.');
    // The session still works.
    const { y: next } = await session.run({ x: x(), scale });
    equal(await next.getData(true), [11, 22, 33]);
  },
};

await tell({ outcomes: await outcomesOf(cases) });
