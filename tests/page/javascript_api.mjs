// The cases of test_javascript_api.py: py_ort.mjs in a page of one's own.
import { equal, fails } from './javascript_checks.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

export { env };

const create = (name, options) => InferenceSession.create(`${name}.pyort`, options);
const x = new Tensor('float32', [1, 2, 3], [1, 3]);
const scale = new Tensor('float32', [10, 20, 30]);

/** What goes to the console until `stop`. */
function listening(method) {
  const said = [];
  const real = console[method];
  console[method] = (text) => said.push(text);
  said.stop = () => {
    console[method] = real;
  };
  return said;
}

/** Each is run twice: with sessions in a worker where they can be, and in the page. */
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
    equal([twice.location, ...twice.data], ['cpu', 21, 42, 63]);
    equal(await twice.getData(true), [21, 42, 63]);
    await fails(() => twice.gpuBuffer, 'in no GPU buffer');
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
    const mine = { executionProviders: [{ name: 'webgpu', device }] };
    const session = await create('add', mine);
    if ((await env.webgpu.device) !== device) throw new Error('another device');
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
    await fails(() => session.run({ x: elsewhere, scale }), 'is on GPU device 0, and this session on device [0-9]');
    const second = await create('add', { ...mine, preferredOutputLocation: 'gpu-buffer' });
    const { y: sibling } = await second.run({ x, scale });
    equal((await session.run({ x: sibling, scale })).y.data, [21, 42, 63]);
    feed.dispose();
    equal([disposals], [1]);
    await session.release();
    await Promise.all([other.release(), second.release()]);
    sibling.dispose();
    // The page's device is still the page's.
    device.pushErrorScope('validation');
    make(16).destroy();
    if (await device.popErrorScope()) throw new Error('the device is gone');
    // Lost, it cannot be had again.
    const last = await create('add', mine);
    device.destroy();
    await fails(() => last.run({ x, scale }), 'was lost.*could not be made again');
    await last.release();
  },

  "a device or an adapter of the page's, for all sessions": async () => {
    env.webgpu.adapter = await navigator.gpu.requestAdapter();
    try {
      const [one, two] = [await create('add'), await create('add')];
      const { lost } = await env.webgpu.device;
      await one.release();
      equal((await two.run({ x, scale })).y.data, [11, 22, 33]);
      await two.release();
      equal([(await lost).reason], ['destroyed']);
      await fails(() => create('add', { executionProviders: ['webgpu'] }), 'register another adapter');
    } finally {
      env.webgpu.adapter = undefined;
    }
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    env.webgpu.device = device;
    try {
      const session = await create('add', { preferredOutputLocation: 'gpu-buffer' });
      const { y } = await session.run({ x, scale });
      const [there, read] = [y.gpuBuffer, device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST | 1 })];
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(there, 0, read, 0, 12);
      device.queue.submit([encoder.finish()]);
      await read.mapAsync(GPUMapMode.READ);
      equal(new Float32Array(read.getMappedRange(0, 12)), [11, 22, 33]);
      y.dispose();
      await session.release();
    } finally {
      env.webgpu.device = undefined;
    }
  },

  'options that are none': async () => {
    const failing = (options, words) =>
      fails(() => create('add', { executionProviders: [{ name: 'webgpu', ...options }] }), words);
    await failing({ bufferMode: 'x' }, 'no option "bufferMode"; it has deviceId, preferredLayout');
    await failing({ storageBufferCacheMode: 'big' }, 'one of disabled, lazyRelease, simple, bucket');
    await failing({ deviceId: -1 }, 'a whole number from 0');
    await fails(
      () => create('add', { executionProvider: ['wasm'] }),
      'no option "executionProvider"; it has executionP',
    );
    await fails(() => create('add', { executionProviders: [] }), 'is empty');
    await fails(() => create('add', { logSeverityLevel: 7 }), 'is 0 to 4, not 7');
    const session = await create('add');
    await fails(() => session.run({ x, scale }, ['y'], { sgnal: 1 }), 'run has no option "sgnal"');
    await fails(() => session.run({ x, scale }, []), 'fetches is empty');
    await fails(() => session.run({ x, scale }, ['z']), 'no output named "z"');
    await fails(() => session.run({ x }), 'no feed for the input "scale"');
    await fails(() => session.run({ x, scale }, { terminate: true }), 'terminate');
    await session.release();
    await fails(() => session.run({ x, scale }), 'released');
  },

  'GPU errors and validation modes': async () => {
    env.wasm.proxy = false;
    for (const [validationMode, fails_] of [
      ['disabled', false],
      ['wgpuOnly', true],
      ['basic', true],
      ['full', true],
    ]) {
      const session = await create('add', { executionProviders: [{ name: 'webgpu', validationMode }] });
      const device = await env.webgpu.device;
      device.createBuffer({ label: 'provoked', size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
      await device.queue.onSubmittedWorkDone();
      if (fails_) await fails(() => session.run({ x, scale }), 'WebGPU: (.|\\n)*provoked');
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      await session.release();
    }
  },

  'a device that is lost': async () => {
    const session = await create('add', { preferredOutputLocation: 'gpu-buffer' });
    const { y } = await session.run({ x, scale });
    const lose = async () => {
      const device = await env.webgpu.device;
      device.destroy();
      await device.lost;
    };
    await lose();
    const { y: back } = await session.run({ x, scale });
    equal(await back.getData(), [11, 22, 33]);
    await fails(() => y.getData(), 'lost');
    await fails(() => session.run({ x: y, scale }), 'lost device');
    const { y: next } = await session.run({ x: back, scale });
    await lose();
    await fails(() => session.run({ x: next, scale }), 'The session is back.*are gone');
    const several = await Promise.all([1, 2, 3].map(() => session.run({ x, scale })));
    for (const each of several) equal(await each.y.getData(), [11, 22, 33]);
    await session.release();
    y.dispose();
  },

  'what does nothing is said': async () => {
    const said = listening('warn');
    try {
      const options = { graphOptimizationLevel: 'basic', enableMemPattern: true, interOpNumThreads: 3 };
      const session = await create('add', { ...options, logId: 'mine' });
      equal(said, ['py_ort: mine: session: without effect here: graphOptimizationLevel, interOpNumThreads']);
      for (const _ of [1, 2]) await session.run({ x, scale }, { tag: 'a', logVerbosityLevel: 0 });
      equal(said.slice(1), ['py_ort: mine: session: run options without effect here: tag']);
      await session.release();
      const quiet = await create('add', {
        executionProviders: [{ name: 'webgpu', preferredLayout: 'NCHW' }],
        logSeverityLevel: 3,
      });
      await quiet.release();
      equal(said.slice(2), []);
    } finally {
      said.stop();
    }
  },

  'a profile': async () => {
    const session = await create('add', { enableProfiling: true });
    await session.run({ x, scale });
    const events = session.endProfiling();
    const named = (name) => events.find((event) => event.name === name);
    if (!(named('model_run')?.dur > 0) || !named('fetch the weights')) throw new Error(JSON.stringify(events));
    equal(session.endProfiling(), []);
    const kernels = [];
    env.webgpu.profiling = { mode: 'default', ondata: (data) => kernels.push(data) };
    await session.run({ x, scale });
    env.webgpu.profiling = {};
    await session.run({ x, scale });
    const timed = kernels.every(({ startTime, endTime, version }) => endTime >= startTime && version === 1);
    if (!timed || kernels.some(({ kernelType }) => kernelType !== 'Add')) throw new Error(JSON.stringify(kernels));
    await session.release();
  },

  'in a worker, or in the page': async () => {
    const made = [];
    const Real = Worker;
    globalThis.Worker = class extends Real {
      constructor(...args) {
        super(...args);
        made.push(args[1].name);
      }
    };
    try {
      env.wasm.proxy = false;
      await (await create('add')).release();
      equal(made, []);
      env.wasm.proxy = true;
      const session = await create('add', { preferredOutputLocation: 'gpu-buffer' });
      const { y } = await session.run({ x, scale });
      equal([y.location], ['gpu-buffer']);
      await fails(() => y.gpuBuffer, 'env.wasm.proxy = false');
      equal(await (await session.run({ x: y, scale })).y.getData(), [21, 42, 63]);
      equal(await y.getData(true), [11, 22, 33]);
      const abort = new AbortController();
      abort.abort();
      await fails(() => session.run({ x, scale }, { signal: abort.signal }), 'abort');
      await session.release();
    } finally {
      globalThis.Worker = Real;
    }
  },

  'kept in the cache': async () => {
    await caches.delete('py_ort');
    await (await create('add', { cache: true })).release();
    const url = new URL('add.pyort', location.href).href;
    const kept = await caches.open('py_ort');
    while (!(await kept.match(url))) await new Promise((resolve) => setTimeout(resolve, 10)); // behind the session
    await kept.put(url, await fetch('strings.pyort'));
    const other = await create('add', { cache: true });
    equal(other.inputNames, ['x', 's']);
    await other.release();
    await caches.delete('py_ort');
  },

  'sessions come and go on one device': async () => {
    const options = { executionProviders: [{ name: 'webgpu', deviceId: 9 }] };
    let session = await create('add', options);
    for (let i = 0; i < 5; i++) {
      const [next] = await Promise.all([create('add', options), session.release()]);
      session = next;
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    }
    await session.release();
  },

  'from bytes, blobs and parts': async () => {
    const bytes = await (await fetch('add.pyort')).arrayBuffer();
    for (const model of [bytes, new Uint8Array(bytes), new Blob([bytes]), new URL('add.pyort', location.href)]) {
      const session = await InferenceSession.create(model);
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      await session.release();
    }
    const first = await (await fetch('parted.pyort')).blob();
    await fails(() => InferenceSession.create(first), 'goes on in the file parted.pyort.1: give its URL');
    await fails(
      () => InferenceSession.create(first, { externalData: [] }),
      'parted.pyort.1, which externalData does not have: it has none',
    );
    const externalData = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => ({
      path: `parted.pyort.${i}`,
      data: `parted.pyort.${i}`,
    }));
    const given = await InferenceSession.create(first, { externalData });
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
    equal([gpu.executionProviders, cpu.executionProviders], ['webgpu,wasm', 'wasm']);
    const [a, b] = [(await gpu.run({ x })).y.data, (await cpu.run({ x })).y.data];
    if (![...a].every((value, i) => Math.abs(value - b[i]) < 1e-4 * (1 + Math.abs(value))))
      throw new Error(`${a}; ${b}`);
    await gpu.release();
    await cpu.release();
  },

  'what the model says of itself': async () => {
    const session = await create('strings');
    const [first, second] = session.inputMetadata.map((each) => JSON.stringify(each));
    equal([first], ['{"name":"x","isTensor":true,"type":"float32","shape":[4]}']);
    equal([second], ['{"name":"s","isTensor":true,"type":"string","shape":["N"]}']);
    equal(
      session.outputMetadata.map(({ name }) => name),
      session.outputNames,
    );
    await session.release();
  },

  'what is left out is said': async () => {
    const said = listening('warn');
    const session = await InferenceSession.create('wasm.pyort', {
      executionProviders: ['webnn', 'webgpu', 'cpu'],
    });
    said.stop();
    equal(said, [
      'py_ort: session: left out: webnn: py_ort has no such provider in a page; webgpu: the model was exported ' +
        'without it (py-ort export --provider webgpu)',
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
      () => InferenceSession.create('add.onnx'),
      'add.onnx is an ONNX file.*py-ort export MODEL.onnx.*py-ort serve',
    );
    await fails(() => InferenceSession.create('index.html'), 'is a page or JSON');
    await fails(() => create('nowhere'), 'nowhere.pyort answered 404');
    await fails(() => InferenceSession.create(new Uint8Array(7)), 'ended after 7 bytes');
    await fails(() => InferenceSession.create(7), 'a model is a URL, a Blob, an ArrayBuffer or a Uint8Array');
    const bytes = new Uint8Array(await (await fetch('add.pyort')).arrayBuffer());
    await fails(() => InferenceSession.create(bytes.slice(0, bytes.length - 4000)), 'broke off|ended after');
    bytes[40] ^= 1;
    await fails(() => InferenceSession.create(bytes), 'damaged: its header has changed');
  },
};
