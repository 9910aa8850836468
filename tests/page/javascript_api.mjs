// The cases of test_javascript_api.py: py_ort.mjs in a page of one's own.
import { equal, fails } from './javascript_checks.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

export { env };

const create = (name, options) => InferenceSession.create(`${name}.pyort`, options);
const x = new Tensor('float32', [1, 2, 3], [1, 3]);
const scale = new Tensor('float32', [10, 20, 30]);

/** A buffer with these elements, or with room for so many bytes. */
function bufferOn(device, given, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST) {
  const bytes = typeof given === 'number' ? new Uint8Array(given) : new Uint8Array(given.buffer);
  const size = Math.ceil(bytes.length / 4) * 4;
  const buffer = device.createBuffer({ size, usage, mappedAtCreation: true });
  new Uint8Array(buffer.getMappedRange()).set(bytes);
  buffer.unmap();
  return buffer;
}

async function contents(device, buffer, array, count) {
  const size = Math.ceil((count * array.BYTES_PER_ELEMENT) / 4) * 4;
  const read = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, read, 0, size);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(GPUMapMode.READ);
  return new array(read.getMappedRange().slice(0), 0, count);
}

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
    const all = await create('strings', { preferredOutputLocation: 'gpu-buffer' });
    const outputs = await all.run({ x: new Tensor('float32', [1, 2, 3, 4]), s });
    equal([outputs.y.location, outputs.t.location, ...outputs.t.data], ['gpu-buffer', 'cpu', 'a', 'ß']);
    await all.release();
    const named = { preferredOutputLocation: { t: 'gpu-buffer' } };
    await fails(() => create('strings', named), 'output "t" is tensor.string., which has no form on the GPU');
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
    await fails(feeding(input, [2, 3]), 'needs a buffer of 24 bytes.* has 16');
    await fails(feeding(make(16, GPUBufferUsage.COPY_DST), [1, 3]), 'lacks the usage STORAGE');
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

  "buffers of the page's, whose elements lie as on the CPU": async () => {
    const session = await create('forms', { preferredOutputLocation: 'gpu-buffer' });
    const device = await env.webgpu.device;
    const given = {
      b: ['bool', Uint8Array.of(1, 0, 7)],
      i: ['int64', BigInt64Array.of(-5n, 3n, 2n)],
      u: ['uint64', BigUint64Array.of(1n, 4000000000n, 3n)],
      c: ['int64', BigInt64Array.of(1n << 40n, -1n, 3n)], // read by the CPU alone, and whole
    };
    const own = (dataType, elements, dims = [3]) =>
      Tensor.fromGpuBuffer(bufferOn(device, elements), { dataType, dims });
    const feeds = Object.fromEntries(Object.entries(given).map(([name, [type, all]]) => [name, own(type, all)]));
    const target = own('bool', 4);
    const cpu = { c_twice: new Tensor('int64', [0, 0, 0]) };
    for (let round = 0; round < 3; round++) {
      const places = { not_b: target, i_float: null, u_float: null, largest: null, ...cpu };
      const { not_b, i_float, u_float, largest, c_twice } = await session.run(feeds, places);
      if (not_b !== target) throw new Error('another tensor');
      equal(await contents(device, target.gpuBuffer, Uint8Array, 3), [0, 1, 0]);
      equal(await i_float.getData(true), [-5, 3, 2]);
      equal(await u_float.getData(true), [1, 4000000000, 3]);
      equal(c_twice.data, [2n << 40n, -2n, 6n]);
      equal(await contents(device, largest.gpuBuffer, BigInt64Array, 1), [1n]);
      // What the page has been given is the tensor, from then on.
      device.queue.writeBuffer(largest.gpuBuffer, 0, BigInt64Array.of(-7n));
      equal(await largest.getData(true), [-7n]);
    }
    const { not_b } = await session.run({ ...feeds, b: new Tensor('bool', [0, 1, 0]) }, ['not_b']);
    const seen = not_b.gpuBuffer;
    equal(await contents(device, seen, Uint8Array, 3), [1, 0, 1]);
    device.queue.writeBuffer(seen, 0, Uint8Array.of(1, 1, 0, 0));
    const again = (await session.run({ ...feeds, b: not_b }, { not_b: target })).not_b;
    equal(await contents(device, again.gpuBuffer, Uint8Array, 3), [0, 0, 1]);
    await session.run({ ...feeds, b: target }, { not_b });
    equal(await contents(device, seen, Uint8Array, 3), [1, 1, 0]);
    not_b.dispose();
    await fails(() => session.run({ ...feeds, i: own('int64', 16) }, ['i_float']), 'needs a buffer of 24 .* has 16');
    await session.release();
  },

  "buffers of the page's of any size, and for shaders only": async () => {
    const session = await create('add');
    const device = await env.webgpu.device;
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    for (const usage of [STORAGE | COPY_SRC | COPY_DST, STORAGE]) {
      const feed = Tensor.fromGpuBuffer(bufferOn(device, Float32Array.of(1, 2, 3), usage), { dims: [1, 3] });
      const target = Tensor.fromGpuBuffer(bufferOn(device, 12, usage | COPY_SRC), { dims: [1, 3] });
      equal((await session.run({ x: feed, scale })).y.data, [11, 22, 33]);
      await session.run({ x: feed, scale }, { y: target });
      equal(await contents(device, target.gpuBuffer, Float32Array, 3), [11, 22, 33]);
    }
    await session.release();
  },

  'GPU tensors of one thread in sessions of another': async () => {
    const said = listening('warn');
    const [own, wasm] = [await create('add'), await create('add', { executionProviders: ['wasm'] })];
    await (await create('parted')).release(); // others have buffers of the same numbers
    const here = await create('add', { preferredOutputLocation: 'gpu-buffer' });
    const { proxy } = env.wasm;
    env.wasm.proxy = true;
    const kept = { preferredOutputLocation: 'gpu-buffer' };
    const [there, sibling] = [await create('add', kept), await create('add', kept)];
    env.wasm.proxy = proxy;
    const [{ y }, { y: far }] = [await here.run({ x, scale }), await there.run({ x, scale })];
    equal((await wasm.run({ x: y, scale })).y.data, [21, 42, 63]);
    equal(await (await sibling.run({ x: far, scale })).y.getData(true), [21, 42, 63]);
    equal(await (await here.run({ x: far, scale })).y.getData(true), [21, 42, 63]);
    equal((await own.run({ x: y, scale })).y.data, [21, 42, 63]);
    equal((await own.run({ x: far, scale })).y.data, [21, 42, 63]);
    await fails(() => here.run({ x, scale }, { y: far }), 'on the GPU of another thread');
    const runs = await Promise.all([1, 2].map(() => there.run({ x: y, scale })));
    for (const each of runs) equal(await each.y.getData(true), [21, 42, 63]);
    said.stop();
    const again = said.filter((text) => text.includes('is loaded again, in the thread of the page'));
    equal([again.length], [proxy === false ? 1 : 2]);
    for (const session of [own, wasm, here, there, sibling]) await session.release();
    equal(await far.getData(true), [11, 22, 33]);
  },

  'on WebGPU, though all nodes are on the CPU': async () => {
    const session = await create('integers', { preferredOutputLocation: 'gpu-buffer' });
    const device = await env.webgpu.device;
    const buffer = bufferOn(device, BigInt64Array.of(1n, -2n, 3n));
    const x = Tensor.fromGpuBuffer(buffer, { dataType: 'int64', dims: [1, 3] });
    const { y } = await session.run({ x, scale: new Tensor('int64', [10, 20, 30]) });
    equal([y.location], ['gpu-buffer']);
    equal(await contents(device, y.gpuBuffer, BigInt64Array, 3), [11n, 18n, 33n]);
    y.dispose();
    await session.release();
  },

  "a run's errors on the GPU are its own": async () => {
    // Firefox tells errors later, unless they are asked for.
    const validationMode = navigator.userAgent.includes('Firefox') ? 'full' : 'basic';
    const session = await create('add', { executionProviders: [{ name: 'webgpu', validationMode }] });
    const other = await (await navigator.gpu.requestAdapter()).requestDevice();
    const foreign = Tensor.fromGpuBuffer(bufferOn(other, new Float32Array(4)), { dims: [1, 3] });
    for (const _ of [1, 2]) {
      await fails(() => session.run({ x: foreign, scale }), 'WebGPU: ');
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    }
    other.destroy();
    await session.release();
  },

  'names that objects of JavaScript have': async () => {
    const session = await create('odd_names');
    const [one, two] = [new Tensor('float32', [1, 2]), new Tensor('float32', [3, 4])];
    const feeds = Object.fromEntries([
      ['constructor', one],
      ['__proto__', two],
    ]);
    const outputs = await session.run(feeds);
    equal(Object.keys(outputs), ['toString', 'tag', 'signal']);
    equal(outputs.toString.data, [4, 6]);
    await fails(() => session.run({ ['__proto__']: two }), 'no feed for the input "constructor"');
    // Outputs are called like options.
    equal(Object.keys(await session.run(feeds, { tag: 'a' })), ['toString', 'tag', 'signal']);
    equal(Object.keys(await session.run(feeds, { tag: null })), ['tag']);
    await fails(() => session.run(feeds, { tag: one, signal: 7 }), 'fetches: "signal" is a Tensor');
    await session.release();
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
      const another = create('add', { executionProviders: ['webgpu'] });
      // Firefox's adapters give any number of devices.
      if (navigator.userAgent.includes('Firefox')) await (await another).release();
      else await fails(() => another, 'register another adapter');
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
    await fails(() => create('add', null), 'options of a session are an object');
    await fails(() => create('add', { executionProviders: 'wasm' }), 'executionProviders is an array');
    await fails(() => create('add', { executionProviders: [null] }), 'provider is a name, or { name, … }, not null');
    await fails(() => create('add', { graphOptimizationLevel: 'most' }), 'one of disabled, .*not "most"');
    await fails(() => create('add', { executionMode: 'both' }), 'one of sequential, parallel, not "both"');
    await fails(() => create('add', { toString: 1 }), 'no option "toString"');
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

  'in the performance timeline': async () => {
    const tracks = () => {
      const entries = performance.getEntriesByType('measure').filter(({ detail }) => detail?.devtools);
      return Object.fromEntries(entries.map(({ name, detail }) => [name, detail.devtools.track]));
    };
    const before = Object.keys(tracks()).length;
    env.wasm.proxy = false;
    for (const trace of [false, true]) {
      env.trace = trace;
      const session = await create('add');
      await session.run({ x, scale });
      await session.release();
      if (!trace) equal([Object.keys(tracks()).length], [before]);
    }
    env.trace = undefined;
    const { run, ...others } = tracks();
    equal([run, others['make the kernels'], others['walk the plan']], ['runs', 'worker', 'worker']);
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
    // What another version of the runtime kept is fetched again.
    await kept.put(url, await fetch('add.onnx'));
    const again = await create('add', { cache: true });
    equal((await again.run({ x, scale })).y.data, [11, 22, 33]);
    await again.release();
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

  'a page with a base': async () => {
    const base = document.createElement('base');
    base.href = 'another/';
    document.head.append(base);
    try {
      await fails(() => create('add'), '/another/add.pyort answered 404');
    } finally {
      base.remove();
    }
    await fails(() => InferenceSession.create('http://'), '"http://" is no URL');
  },

  'what is no model': async () => {
    await fails(
      () => InferenceSession.create('add.onnx'),
      'add.onnx is an ONNX file.*py-ort export MODEL.onnx.*py-ort serve',
    );
    await fails(() => InferenceSession.create('index.html'), 'is a page or JSON');
    await fails(() => create('nowhere'), 'nowhere.pyort answered 404');
    await fails(() => InferenceSession.create(new Uint8Array(7)), 'ended after 7 bytes');
    await fails(() => InferenceSession.create(Response.json({})), 'a model is a URL.*not .object Response');
    await fails(() => InferenceSession.create(7), 'a model is a URL, a Blob, an ArrayBuffer or a Uint8Array');
    const bytes = new Uint8Array(await (await fetch('add.pyort')).arrayBuffer());
    await fails(() => InferenceSession.create(bytes.slice(0, bytes.length - 4000)), 'broke off|ended after');
    bytes[40] ^= 1;
    await fails(() => InferenceSession.create(bytes), 'damaged: its header has changed');
  },
};
