// The cases of test_javascript_api.py: py_ort.js in a page of one's own.
import { InferenceSession, Runtime, Tensor } from './py_ort.js';

const runtime = new Runtime();
const create = (name, options = {}) => InferenceSession.create(`${name}.pyort`, { runtime, ...options });
const x = new Tensor('float32', [1, 2, 3], [1, 3]);
const scale = new Tensor('float32', [10, 20, 30]);

function equal(actual, expected) {
  if (actual.length === expected.length && [...actual].join() === expected.join()) return;
  throw new Error(`expected ${expected}, got ${[...actual]}`);
}

async function fails(work, words) {
  const error = await Promise.resolve()
    .then(work)
    .then(
      () => undefined,
      (e) => e,
    );
  if (!error) throw new Error(`no error, where one should say: ${words}`);
  if (!new RegExp(words).test(error.message)) throw error;
}

export const cases = {
  'on the CPU': async () => {
    const session = await create('add');
    const { y } = await session.run({ x, scale });
    equal([y.type, y.location, y.size, ...y.dims], ['float32', 'cpu', 3, 1, 3]);
    equal(y.data, [11, 22, 33]);
    const mine = new Tensor('float32', [0, 0, 0], [1, 3]);
    const again = await session.run({ x, scale }, { y: mine });
    if (again.y !== mine) throw new Error('another tensor');
    equal(mine.data, [11, 22, 33]);
    const flat = new Tensor('float32', [0, 0, 0], [3]);
    await fails(() => session.run({ x, scale }, { y: flat }), 'y" is float32.1,3.; the tensor for it is float32.3.');
    await session.release();
  },

  'outputs stay on the GPU': async () => {
    const session = await create('add', { preferredOutputLocation: 'gpu-buffer' });
    const { y } = await session.run({ x, scale });
    equal([y.location], ['gpu-buffer']);
    await fails(() => y.data, 'await getData');
    const { y: twice } = await session.run({ x: y, scale });
    equal(await twice.getData(), [21, 42, 63]);
    equal([twice.location], ['gpu-buffer']);
    equal(await twice.getData(true), [21, 42, 63]);
    equal([twice.location, ...twice.data], ['cpu', 21, 42, 63]);
    y.dispose();
    equal([y.location], ['none']);
    await fails(() => session.run({ x: y, scale }), 'disposed of');
    await fails(() => y.getData(), 'disposed of');
    equal((await session.run({ x, scale }, ['y'])).y.dims, [1, 3]);
    await session.release();
  },

  'by name': async () => {
    const session = await create('strings', { preferredOutputLocation: { y: 'gpu-buffer' } });
    const s = new Tensor('string', ['a', 'ß']);
    const { y, t } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4]), s });
    equal([y.location, t.location, ...t.data], ['gpu-buffer', 'cpu', 'a', 'ß']);
    equal(await y.getData(true), [2, 4, 6, 8]);
    await session.release();
    await fails(() => create('add', { preferredOutputLocation: { z: 'cpu' } }), 'no output "z"');
    await fails(() => create('add', { preferredOutputLocation: 'gpu' }), 'not "gpu"');
  },

  "buffers of one's own, on a device of one's own": async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const own = new Runtime();
    own.registerDevice(7, device);
    await fails(() => own.registerDevice(0, device), 'above 0');
    const session = await create('add', { runtime: own, webgpu: { deviceId: 7 } });
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const make = (size, use = usage) => device.createBuffer({ size, usage: use });
    const [input, output] = [make(16), make(32)];
    device.queue.writeBuffer(input, 0, new Float32Array([1, 2, 3]));
    let disposals = 0;
    const feed = Tensor.fromGpuBuffer(input, { dims: [1, 3], dispose: () => disposals++ });
    const target = Tensor.fromGpuBuffer(output, { dims: [1, 3] });
    for (const round of [1, 2, 3]) {
      const { y } = await session.run({ x: feed, scale }, { y: target });
      if (y !== target) throw new Error('another tensor');
      const { replayed, counters: made } = session.lastRun;
      const count = [made.pipelines, made.buffers, made.bind_groups, made.walks];
      if (round > 1) equal([replayed, ...count], [true, 0, 0, 0, 0]);
    }
    // Its own output is its next input: what was read is read before it is written.
    await session.run({ x: target, scale }, { y: target });
    const { y } = await session.run({ x: target, scale });
    equal(y.data, [31, 62, 93]);
    await fails(() => target.getData(), 'download');
    const feeding = (buffer, dims) => () => session.run({ x: Tensor.fromGpuBuffer(buffer, { dims }), scale });
    await fails(feeding(input, [2, 3]), 'needs a buffer of 32 bytes.* has 16');
    await fails(feeding(make(16, GPUBufferUsage.STORAGE), [1, 3]), 'usage COPY_SRC, COPY_DST');
    const upright = Tensor.fromGpuBuffer(output, { dims: [3, 1] });
    await fails(() => session.run({ x: feed, scale }, { y: upright }), 'bound to it is float32.3,1.');
    const other = await create('add', { preferredOutputLocation: 'gpu-buffer' });
    const { y: elsewhere } = await other.run({ x, scale });
    await fails(() => session.run({ x: elsewhere, scale }), 'no GPU buffer');
    const second = await create('add', { runtime: own, preferredOutputLocation: 'gpu-buffer' });
    const { y: sibling } = await second.run({ x, scale });
    await fails(() => session.run({ x: sibling, scale }), 'is on GPU device 0, and this session on device 7');
    feed.dispose();
    equal([disposals], [1]);
    await session.release();
    // The page's device is still the page's.
    device.pushErrorScope('validation');
    make(16).destroy();
    if (await device.popErrorScope()) throw new Error('the device is gone');
    await Promise.all([other.release(), second.release()]);
  },

  "an adapter of one's own": async () => {
    const own = new Runtime();
    own.registerDevice(3, await navigator.gpu.requestAdapter());
    const onIt = (options) => create('add', { runtime: own, webgpu: { deviceId: 3, ...options } });
    await fails(() => onIt({ powerPreference: 'low-power' }), 'registered by the page');
    const [one, two] = [await onIt(), await onIt()];
    if (one.session.provider !== two.session.provider) throw new Error('two devices');
    const lost = one.session.provider.gpu.device.lost;
    await one.release();
    equal((await two.run({ x, scale })).y.data, [11, 22, 33]);
    await two.release();
    equal([(await lost).reason], ['destroyed']);
    await fails(onIt, 'register another adapter');
  },

  'options that are none': async () => {
    const failing = (webgpu, words) => fails(() => create('add', { webgpu }), words);
    await failing({ bufferMode: 'x' }, 'no option "bufferMode"; it has deviceId, preferredLayout');
    await failing({ storageBufferCacheMode: 'big' }, 'one of disabled, lazyRelease, simple, bucket');
    await failing({ deviceId: -1 }, 'a whole number from 0');
  },

  tensors: async () => {
    equal(new Tensor('int64', [1, 2n]).data, [1n, 2n]);
    equal(new Tensor('bool', [true, false]).data, [1, 0]);
    await fails(() => new Tensor('float32', [1, 2, 3], [2, 2]), 'has 4 elements, not 3');
    await fails(() => new Tensor('float32', new Int32Array(2)), 'takes Float32Array, not Int32Array');
    await fails(() => new Tensor('float31', [1]), 'no tensor type "float31"');
    await fails(() => x.gpuBuffer, 'on the CPU');
    equal(await x.getData(), [1, 2, 3]);
  },

  'GPU errors and validation modes': async () => {
    for (const [validationMode, fails_] of [
      ['disabled', false],
      ['wgpuOnly', true],
      ['basic', true],
      ['full', true],
    ]) {
      const session = await create('add', { webgpu: { validationMode } });
      const { gpu } = session.session.provider;
      gpu.device.createBuffer({ label: 'provoked', size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
      await gpu.device.queue.onSubmittedWorkDone();
      if (fails_) await fails(() => session.run({ x, scale }), 'WebGPU: (.|\\n)*provoked');
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      await session.release();
    }
  },

  'a device that is lost': async () => {
    const own = new Runtime();
    const session = await create('add', { runtime: own, preferredOutputLocation: 'gpu-buffer' });
    const { y } = await session.run({ x, scale });
    const { device } = session.session.provider.gpu;
    device.destroy();
    await device.lost;
    await fails(() => session.run({ x, scale }), 'create the session again');
    await fails(() => y.getData(), 'lost');
    const again = await create('add', { runtime: own });
    equal((await again.run({ x, scale })).y.data, [11, 22, 33]);
    await fails(() => again.run({ x: y, scale }), 'lost device');
    await again.release();
    await session.release();
    y.dispose();
  },

  'options of the compiler': async () => {
    const said = [];
    runtime.log = (_severity, _category, text) => said.push(text);
    const session = await create('add', { webgpu: { preferredLayout: 'NCHW' } });
    await session.release();
    equal(
      said.filter((text) => text.includes('without effect')),
      ['preferredLayout: decided when the plan was made, so without effect here'],
    );
  },

  'sessions come and go on one device': async () => {
    const webgpu = { deviceId: 9 };
    let session = await create('add', { webgpu });
    for (let i = 0; i < 5; i++) {
      const [next] = await Promise.all([create('add', { webgpu }), session.release()]);
      session = next;
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    }
    await session.release();
    if ((await runtime.contexts.all()).has(9)) throw new Error('the device is still open');
  },

  'from bytes, blobs and parts': async () => {
    const bytes = await (await fetch('add.pyort')).arrayBuffer();
    for (const model of [bytes, new Uint8Array(bytes), new Blob([bytes]), new URL('add.pyort', location.href)]) {
      const session = await InferenceSession.create(model, { runtime });
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      await session.release();
    }
    const first = await (await fetch('parted.pyort')).blob();
    await fails(() => InferenceSession.create(first, { runtime }), 'goes on in the file parted.pyort.1: give its URL');
    await fails(
      () => InferenceSession.create(first, { runtime, externalData: [] }),
      'parted.pyort.1, which externalData does not have: it has none',
    );
    const externalData = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => ({
      path: `parted.pyort.${i}`,
      data: `parted.pyort.${i}`,
    }));
    const given = await InferenceSession.create(first, { runtime, externalData });
    const parted = await create('parted');
    const image = new Tensor(
      'float32',
      Float32Array.from({ length: 256 }, (_, i) => Math.sin(i)),
      [1, 4, 8, 8],
    );
    const [a, b] = [(await parted.run({ x: image })).y, (await given.run({ x: image })).y];
    equal(a.data, [...b.data]);
    if (!a.data.some((value) => value !== 0)) throw new Error('all zeros');
    await parted.release();
    await given.release();
  },

  'on wasm alone, the same numbers': async () => {
    const x = new Tensor(
      'float32',
      Float32Array.from({ length: 256 }, (_, i) => Math.sin(i)),
      [1, 4, 8, 8],
    );
    const [gpu, cpu] = [await create('parted'), await create('parted', { executionProviders: ['wasm'] })];
    equal([gpu.session.provider !== undefined, cpu.session.provider !== undefined], [true, false]);
    const [a, b] = [(await gpu.run({ x })).y.data, (await cpu.run({ x })).y.data];
    if (![...a].every((value, i) => Math.abs(value - b[i]) < 1e-4 * (1 + Math.abs(value))))
      throw new Error(`${a}; ${b}`);
    await gpu.release();
    await cpu.release();
  },

  'what the model says of itself': async () => {
    const session = await create('strings');
    equal(
      [JSON.stringify(session.inputMetadata)],
      [
        '[{"name":"x","isTensor":true,"type":"float32","shape":[4]},{"name":"s","isTensor":true,"type":"string","shape":["N"]}]',
      ],
    );
    equal(
      session.outputMetadata.map(({ name }) => name),
      session.outputNames,
    );
    await session.release();
  },

  'what is left out is said': async () => {
    const said = [];
    const runtime = new Runtime();
    runtime.log = (severity, _category, text) => severity === 2 && said.push(text);
    const session = await InferenceSession.create('wasm.pyort', {
      runtime,
      executionProviders: ['webnn', 'webgpu', 'cpu'],
    });
    equal(said, [
      'left out: webnn: py_ort has no such provider in a page; webgpu: the model was exported without it (py-ort export --provider webgpu)',
    ]);
    await session.release();
    await fails(
      () => create('wasm', { executionProviders: ['webgpu'] }),
      'no execution provider is available: webgpu: the model',
    );
    await fails(() => create('add', { executionProviders: ['gpu'] }), 'no execution provider "gpu"');
  },

  'what is no model': async () => {
    await fails(
      () => InferenceSession.create('add.onnx', { runtime }),
      'add.onnx is an ONNX file.*py-ort export MODEL.onnx.*py-ort serve',
    );
    await fails(() => InferenceSession.create('index.html', { runtime }), 'is a page or JSON');
    await fails(() => create('nowhere'), 'nowhere.pyort answered 404');
    await fails(() => InferenceSession.create(new Uint8Array(7), { runtime }), 'ended after 7 bytes');
    await fails(
      () => InferenceSession.create(7, { runtime }),
      'a model is a URL, a Blob, an ArrayBuffer or a Uint8Array',
    );
    const bytes = new Uint8Array(await (await fetch('add.pyort')).arrayBuffer());
    await fails(
      () => InferenceSession.create(bytes.slice(0, bytes.length - 4000), { runtime }),
      'broke off|ended after',
    );
    bytes[40] ^= 1;
    await fails(() => InferenceSession.create(bytes, { runtime }), 'damaged: its header has changed');
  },
};
