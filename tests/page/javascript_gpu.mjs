// Cases of javascript_api.mjs: tensors on the GPU, devices, and their errors.
import { bufferOn, contents, equal, fails } from './javascript_checks.mjs';
import { create, listening, scale, x } from './javascript_parts.mjs';
import { env, Tensor } from './py_ort.mjs';

const KEPT = { preferredOutputLocation: 'gpu-buffer' };
let triedWithoutMemory = 0;

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
    // Of another copy of the package.
    const foreign = { type: 'float32', dims: [1, 3], size: 3, location: 'cpu', data: new Float32Array(3) };
    for (const more of [[], [{}]]) {
      const { y: given } = await session.run({ x, scale }, { y: foreign }, ...more);
      if (given !== foreign) throw new Error('another tensor');
      equal(foreign.data, [11, 22, 33]);
      foreign.data.fill(0);
    }
    const flat = new Tensor('float32', [0, 0, 0], [3]);
    await fails(() => session.run({ x, scale }, { y: flat }), 'y" is float32.1,3.; the tensor for it is float32.3.');
  },

  'outputs stay on the GPU': async () => {
    const session = await create('add', KEPT);
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
  },

  'by name': async () => {
    const session = await create('strings', { preferredOutputLocation: { y: 'gpu-buffer' } });
    const s = new Tensor('string', ['a', 'ß']);
    const { y, t } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4]), s });
    equal([y.location, t.location, ...t.data], ['gpu-buffer', 'cpu', 'a', 'ß']);
    equal(await y.getData(true), [2, 4, 6, 8]);
    const all = await create('strings', KEPT);
    const outputs = await all.run({ x: new Tensor('float32', [1, 2, 3, 4]), s });
    equal([outputs.y.location, outputs.t.location, ...outputs.t.data], ['gpu-buffer', 'cpu', 'a', 'ß']);
    const named = { preferredOutputLocation: { t: 'gpu-buffer' } };
    await fails(() => create('strings', named), 'output "t" is tensor.string., which has no form on');
    await fails(() => create('add', { preferredOutputLocation: { z: 'cpu' } }), 'no output "z"');
    await fails(() => create('add', { preferredOutputLocation: 'gpu' }), 'not "gpu"');
  },

  "buffers of one's own, on a device of one's own": async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const mine = { executionProviders: [{ name: 'webgpu', device }] };
    const session = await create('add', mine);
    if ((await env.webgpu.device) !== device) throw new Error('another device');
    const [input, output] = [bufferOn(device, Float32Array.of(1, 2, 3, 0)), bufferOn(device, 32)];
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
    // A tensor of another copy of the package.
    const foreign = { type: 'float32', dims: [1, 3], size: 3, location: 'gpu-buffer', gpuBuffer: output };
    if ((await session.run({ x: feed, scale }, { y: foreign })).y !== foreign) throw new Error('another tensor');
    // Its own output is its next input: all reads precede the writes.
    await session.run({ x: target, scale }, { y: target });
    const { y } = await session.run({ x: target, scale });
    equal(y.data, [31, 62, 93]);
    await fails(() => target.getData(), 'download');
    const feeding = (buffer, dims) => () => session.run({ x: Tensor.fromGpuBuffer(buffer, { dims }), scale });
    await fails(feeding(input, [2, 3]), 'needs a buffer of 24 bytes.* has 16');
    await fails(feeding(bufferOn(device, 16, GPUBufferUsage.COPY_DST), [1, 3]), 'lacks the usage STORAGE');
    const upright = Tensor.fromGpuBuffer(output, { dims: [3, 1] });
    await fails(() => session.run({ x: feed, scale }, { y: upright }), 'bound to it is float32.3,1.');
    const other = await create('add', { executionProviders: [{ name: 'webgpu', deviceId: 5 }], ...KEPT });
    const { y: elsewhere } = await other.run({ x, scale });
    await fails(() => session.run({ x: elsewhere, scale }), 'is on device 5 of webgpu, and this session on');
    const second = await create('add', { ...mine, ...KEPT });
    const { y: sibling } = await second.run({ x, scale });
    equal((await session.run({ x: sibling, scale })).y.data, [21, 42, 63]);
    feed.dispose();
    equal([disposals], [1]);
    await session.release();
    await Promise.all([other.release(), second.release()]);
    sibling.dispose();
    // The page's device remains the page's.
    device.pushErrorScope('validation');
    bufferOn(device, 16).destroy();
    if (await device.popErrorScope()) throw new Error('the device is gone');
    // After it is lost, it cannot be used again.
    const last = await create('add', mine);
    device.destroy();
    await fails(() => last.run({ x, scale }), 'was lost.*could not be made again');
  },

  "buffers of the page's, whose elements lie as on the CPU": async () => {
    const session = await create('forms', KEPT);
    const device = await env.webgpu.device;
    const given = {
      b: ['bool', Uint8Array.of(1, 0, 7)],
      i: ['int64', BigInt64Array.of(-5n, 3n, 2n)],
      u: ['uint64', BigUint64Array.of(1n, 4000000000n, 3n)],
      c: ['int64', BigInt64Array.of(1n << 40n, -1n, 3n)], // only the CPU reads it, whole
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
      // The page has been given the tensor itself, from then on.
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
  },

  'GPU tensors of one thread in sessions of another': async () => {
    const said = listening('warn');
    const [own, wasm] = [await create('add'), await create('add', { executionProviders: ['wasm'] })];
    await (await create('parted')).release(); // others have buffers with the same numbers
    const here = await create('add', KEPT);
    const { proxy } = env.wasm;
    env.wasm.proxy = true;
    const [there, sibling] = [await create('add', KEPT), await create('add', KEPT)];
    env.wasm.proxy = proxy;
    const [{ y }, { y: far }] = [await here.run({ x, scale }), await there.run({ x, scale })];
    equal((await wasm.run({ x: y, scale })).y.data, [21, 42, 63]);
    equal(await (await sibling.run({ x: far, scale })).y.getData(true), [21, 42, 63]);
    equal(await (await here.run({ x: far, scale })).y.getData(true), [21, 42, 63]);
    equal((await own.run({ x: y, scale })).y.data, [21, 42, 63]);
    equal((await own.run({ x: far, scale })).y.data, [21, 42, 63]);
    await fails(() => here.run({ x, scale }, { y: far }), 'on a device of another thread');
    const runs = await Promise.all([1, 2].map(() => there.run({ x: y, scale })));
    for (const each of runs) equal(await each.y.getData(true), [21, 42, 63]);
    said.stop();
    const again = said.filter((text) => text.includes("is loaded again in the page's thread"));
    equal([again.length], [proxy === false ? 1 : 2]);
    for (const session of [own, wasm, here, there, sibling]) await session.release();
    equal(await far.getData(true), [11, 22, 33]);
  },

  'on WebGPU, though all nodes are on the CPU': async () => {
    const session = await create('integers', KEPT);
    const device = await env.webgpu.device;
    const buffer = bufferOn(device, BigInt64Array.of(1n, -2n, 3n));
    const x = Tensor.fromGpuBuffer(buffer, { dataType: 'int64', dims: [1, 3] });
    const { y } = await session.run({ x, scale: new Tensor('int64', [10, 20, 30]) });
    equal([y.location], ['gpu-buffer']);
    equal(await contents(device, y.gpuBuffer, BigInt64Array, 3), [11n, 18n, 33n]);
    y.dispose();
  },

  "a run's errors on the GPU are its own": async () => {
    const session = await create('add', { executionProviders: ['webgpu'] });
    const other = await (await navigator.gpu.requestAdapter()).requestDevice();
    const foreign = Tensor.fromGpuBuffer(bufferOn(other, new Float32Array(4)), { dims: [1, 3] });
    for (const _ of [1, 2]) {
      await fails(() => session.run({ x: foreign, scale }), 'node "(.*)" .Add.: WebGPU: ');
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    }
    other.destroy();
  },

  'errors on the GPU in a run that was recorded': async () => {
    env.wasm.proxy = false;
    for (const preferredOutputLocation of ['cpu', 'gpu-buffer']) {
      const session = await create('add', { executionProviders: ['webgpu'], preferredOutputLocation });
      const ask = async (given) => equal(await (await session.run({ x: given, scale })).y.getData(), [11, 22, 33]);
      const mine = bufferOn(await env.webgpu.device, new Float32Array([1, 2, 3, 0]));
      const there = Tensor.fromGpuBuffer(mine, { dims: [1, 3] });
      for (const _ of [1, 2, 3]) await ask(there);
      mine.destroy();
      for (const _ of [1, 2]) {
        await fails(() => session.run({ x: there, scale }), 'node "(.*)" .Add.: WebGPU: ');
        await ask(x);
      }
    }
  },

  'no memory on the GPU': async () => {
    env.wasm.proxy = false;
    const { prototype } = GPUDevice;
    const { createBuffer } = prototype;
    let spent = 0;
    // Buffers for the tensors of a run fail as on a GPU without memory.
    prototype.createBuffer = function (descriptor) {
      const none = descriptor.label === 'arena';
      if (none) spent++;
      return createBuffer.call(this, none ? { ...descriptor, size: 2 ** 52 } : descriptor);
    };
    const session = await create('add', { executionProviders: ['webgpu'] });
    // A size that no cached buffer has.
    const rows = 10000 + 1000 * triedWithoutMemory++;
    const many = new Tensor('float32', new Float32Array(rows * 3).fill(1), [rows, 3]);
    try {
      for (const _ of [1, 2]) await fails(() => session.run({ x: many, scale }), 'node "(.*)" .Add.: WebGPU: ');
    } finally {
      prototype.createBuffer = createBuffer;
    }
    equal([spent > 1], [true]);
    equal((await session.run({ x: many, scale })).y.data.slice(-3), [11, 21, 31]);
    equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
  },

  "a device or an adapter of the page's, for all sessions": async () => {
    env.webgpu.adapter = await navigator.gpu.requestAdapter();
    try {
      const [one, two] = [await create('add'), await create('add')];
      const device = await env.webgpu.device;
      await one.release();
      equal((await two.run({ x, scale })).y.data, [11, 22, 33]);
      await two.release();
      // An adapter gives one device: it stays for the next session.
      const another = await create('add');
      if ((await env.webgpu.device) !== device) throw new Error('another device');
      equal((await another.run({ x, scale })).y.data, [11, 22, 33]);
      await another.release();
    } finally {
      env.webgpu.adapter = undefined;
    }
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    env.webgpu.device = device;
    try {
      const session = await create('add', KEPT);
      const { y } = await session.run({ x, scale });
      equal(await contents(device, y.gpuBuffer, Float32Array, 3), [11, 22, 33]);
      y.dispose();
      await session.release();
    } finally {
      env.webgpu.device = undefined;
    }
  },

  "a session behind one on the page's own device": async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const session = await create('add', { executionProviders: [{ name: 'webgpu', device }] });
    await session.release();
    for (const options of [{}, { preferredOutputLocation: 'gpu-buffer' }]) {
      const later = await create('add', { executionProviders: ['webgpu'], ...options });
      const buffer = bufferOn(await env.webgpu.device, new Float32Array([1, 2, 3, 0]));
      const { y } = await later.run({ x: Tensor.fromGpuBuffer(buffer, { dims: [1, 3] }), scale });
      equal(await y.getData(), [11, 22, 33]);
      if ((await env.webgpu.device) !== device) throw new Error('another device');
      await later.release();
    }
    device.destroy();
    await device.lost;
    const unhandled = [];
    const note = ({ reason }) => unhandled.push(reason.message);
    addEventListener('unhandledrejection', note);
    try {
      equal((await (await create('add')).run({ x, scale })).y.data, [11, 22, 33]);
      const last = await create('add', { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' });
      equal(await (await last.run({ x, scale })).y.getData(), [11, 22, 33]);
    } finally {
      removeEventListener('unhandledrejection', note);
    }
    equal(unhandled, []);
  },

  'memory on the GPU, before and after a session': async () => {
    env.wasm.proxy = false;
    const alive = new Set();
    const spied = [
      [GPUDevice.prototype, 'createBuffer', (buffer) => alive.add(buffer)],
      [GPUBuffer.prototype, 'destroy', (_, buffer) => alive.delete(buffer)],
      [GPUQueue.prototype, 'writeBuffer', () => (written = true)],
      [GPUQueue.prototype, 'submit', () => submitted()],
    ].map(([prototype, name, note]) => {
      const real = prototype[name];
      prototype[name] = function (...given) {
        const result = real.apply(this, given);
        note(result, this);
        return result;
      };
      return () => (prototype[name] = real);
    });
    let written = false;
    let submitted = () => (written = false);
    const { dims, x: given } = await (await fetch('integer_products.json')).json();
    const left = () => [...alive].map(({ label, size }) => `${label} ${size}`);
    try {
      const beside = await create('add', { executionProviders: ['webgpu'] });
      await beside.run({ x, scale });
      const before = left();
      const session = await create('integer_products', { executionProviders: ['webgpu'] });
      if (alive.size === 0 || written) throw new Error(`${alive.size} buffers, not submitted: ${written}`);
      const { y } = await session.run({ x: new Tensor('float32', given, dims) });
      if (!y.data.some((value) => value !== 0)) throw new Error('all zeros');
      await session.release();
      equal(left(), before);
      await beside.release();
      equal(left(), []);
      // Outputs that a run leaves on the GPU when it was aborted have no owner.
      const options = { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' };
      const again = await create('integer_products', options);
      const abort = new AbortController();
      submitted = () => abort.abort('mine');
      const run = again.run({ x: new Tensor('float32', given, dims) }, { signal: abort.signal });
      equal([await run.catch((e) => e)], ['mine']);
      await again.release();
      for (let i = 0; i < 1000 && alive.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
      equal(left(), []);
    } finally {
      for (const undo of spied) undo();
    }
  },

  'GPU errors and validation modes': async () => {
    env.wasm.proxy = false;
    for (const validationMode of ['disabled', 'wgpuOnly', 'basic', 'full']) {
      const session = await create('add', { executionProviders: [{ name: 'webgpu', validationMode }] });
      const device = await env.webgpu.device;
      device.createBuffer({ label: 'provoked', size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
      await device.queue.onSubmittedWorkDone();
      if (validationMode !== 'disabled') await fails(() => session.run({ x, scale }), 'WebGPU: (.|\\n)*provoked');
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      await session.release();
    }
  },

  'a device that is lost': async () => {
    const session = await create('add', KEPT);
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
};
