// Cases of javascript_api.mjs: errors, reasons and warnings for pages; and accepted arguments.
import { equal, fails } from './javascript_checks.mjs';
import { create, listening, scale, x } from './javascript_parts.mjs';
import { env, InferenceSession, RuntimeError, Tensor } from './py_ort.mjs';

export const cases = {
  'errors say who asked, and keep their names': async () => {
    equal(
      [InferenceSession, Tensor, RuntimeError].map(({ name }) => name),
      ['InferenceSession', 'Tensor', 'RuntimeError'],
    );
    const session = await create('add');
    const wrong = new Tensor('float32', [1, 2], [1, 2]);
    const runtime = env.wasm.proxy === false ? 'py_ort' : 'session_worker';
    async function asksForModel() {
      await InferenceSession.create('nowhere.pyort');
    }
    async function asksForRun() {
      await session.run({ x: wrong, scale });
    }
    async function asksForTokens() {
      await session.generate([1], { maxNewTokens: 1 }).result;
    }
    async function asksForImage() {
      await Tensor.fromImage('nowhere.png');
    }
    const gone = new Tensor('float32', [1]);
    gone.dispose();
    const makesTensor = () => new Tensor('float32', [1], [5]);
    const makesPinned = () => Tensor.fromPinnedBuffer('float32', 7);
    const takesBuffer = () => Tensor.fromGpuBuffer({}, { dataType: 'string', dims: [1] });
    const reshapes = () => x.reshape([5]);
    const readsData = () => gone.data;
    const readsBuffer = () => x.gpuBuffer;
    const drawsImage = () => x.toImageData({ format: 'CMYK' });
    const promptsNothing = () => session.generate([]);
    const synchronous = [makesTensor, makesPinned, takesBuffer, reshapes, readsData, readsBuffer, drawsImage];
    for (const [asks, finds] of [
      [asksForModel, runtime],
      [asksForRun, runtime],
      [asksForTokens, 'generate.mjs'],
      [asksForImage, 'py_ort'],
      ...[...synchronous, promptsNothing].map((asks) => [asks, 'py_ort']),
    ]) {
      const error = await (async () => asks())().catch((e) => e);
      const [text, ...frames] = error.stack.replace(/^(?!RuntimeError)/, 'RuntimeError\n').split('\n');
      if (error.constructor !== RuntimeError || !text.startsWith('RuntimeError')) throw error;
      const own = frames.findIndex((frame) => frame.includes(asks.name));
      // Other engines may leave a frame of ours before it.
      if (own < 0 || (own > 0 && navigator.userAgent.includes('Chrome')))
        throw new Error(`${asks.name} is not where it begins: ${error.stack}`);
      if (!error.cause.stack.includes(finds)) throw new Error(`the cause's stack is ${error.cause.stack}`);
    }
    await session.release();
  },

  'members of env.webgpu that are none': async () => {
    for (const [member, given, words] of [
      ['device', {}, 'device of webgpu is a GPUDevice, not Object'],
      ['device', 5, 'not a number'],
      ['device', Promise.resolve(), 'not Promise: await it'],
      ['adapter', 'x', 'adapter of webgpu is a GPUAdapter, not a string'],
      ['powerPreference', 'fast', 'env.webgpu.powerPreference is one of low-power, high-performance, not "fast"'],
    ]) {
      env.webgpu[member] = given;
      try {
        await fails(() => create('add'), words);
      } finally {
        env.webgpu[member] = undefined;
      }
    }
    await (await create('add')).release();
  },

  'the reason of a signal': async () => {
    const endless = await create('endless', { executionProviders: ['wasm'] });
    for (const reason of [new Error('mine'), undefined]) {
      const abort = new AbortController();
      const run = endless.run({ x: new Tensor('float32', [1, 2], [2]) }, { signal: abort.signal });
      abort.abort(reason);
      const error = await run.catch((e) => e);
      if (error !== abort.signal.reason) throw error;
      const loading = InferenceSession.create('add.pyort', { signal: abort.signal });
      if ((await loading.catch((e) => e)) !== abort.signal.reason) throw new Error('another reason of create');
    }
    await endless.release();
  },

  'a function for the progress that throws': async () => {
    let calls = 0;
    const onProgress = () => {
      calls++;
      throw new Error('mine');
    };
    for (const signal of [undefined, new AbortController().signal])
      await fails(() => create('parted', { onProgress, signal }), '^mine$');
    equal([calls], [2]);
    await fails(() => create('parted', { onProgress: 'x' }), 'onProgress is a function, not a string');
    await (await create('parted', { onProgress: null })).release();
  },

  'a signal ends its run at once, and one that waits never begins': async () => {
    const wasm = { executionProviders: ['wasm'] };
    const [endless, session] = [await create('endless', wasm), await create('add', wasm)];
    const [one, other] = [new AbortController(), new AbortController()];
    const running = endless.run({ x: new Tensor('float32', [1, 2], [2]) }, { signal: one.signal });
    const waiting = session.run({ x, scale }, { signal: other.signal });
    other.abort('other');
    equal([await waiting.catch((e) => e)], ['other']);
    one.abort('one');
    equal([await running.catch((e) => e)], ['one']);
    if (env.wasm.proxy === false) {
      // The first run leaves no turn of the event loop to others.
      const { port1, port2 } = new MessageChannel();
      const late = new AbortController();
      port1.onmessage = () => late.abort('late');
      port2.postMessage('abort');
      const runs = [session.run({ x, scale }), session.run({ x, scale }, { signal: late.signal })];
      const [done, never] = await Promise.allSettled(runs);
      equal([done.status, never.reason], ['fulfilled', 'late']);
      port1.close();
    }
    equal((await session.run({ x, scale }, { signal: new AbortController().signal })).y.data, [11, 22, 33]);
    await session.release();
    await endless.release();
  },

  'feeds that are not as they were made': async () => {
    const session = await create('add');
    const data = Float32Array.of(1, 2, 3);
    const foreign = { type: 'float32', dims: [1, 3], size: 3, location: 'cpu', data };
    equal((await session.run({ x: foreign, scale })).y.data, [11, 22, 33]);
    const sent = new Tensor('float32', data, [1, 3]);
    structuredClone(data.buffer, { transfer: [data.buffer] });
    await fails(() => session.run({ x: sent, scale }), 'input "x": the buffer of its data was transferred elsewhere');
    const places = Float32Array.of(1, 2, 3);
    const target = new Tensor('float32', places, [1, 3]);
    structuredClone(places.buffer, { transfer: [places.buffer] });
    const words = 'the tensor for output "y": the buffer of its data was transferred elsewhere';
    await fails(() => session.run({ x, scale }, { y: target }), words);
    const gpu = await create('add', { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' });
    const { y } = await gpu.run({ x, scale });
    const late = gpu.run({ x: y, scale });
    y.dispose();
    await fails(() => late, 'input "x": there is no GPU buffer');
    await gpu.release();
    // A run takes its feeds when it is called.
    const reused = new Float32Array(3);
    const runs = [1, 2, 3].map((value) => session.run({ x: new Tensor('float32', reused.fill(value), [1, 3]), scale }));
    structuredClone(reused.buffer, { transfer: [reused.buffer] });
    const outputs = await Promise.all(runs);
    equal(
      outputs.map(({ y }) => y.data[0]),
      [11, 12, 13],
    );
    await session.release();
  },

  'maps are tensors, whose columns have keys': async () => {
    const session = await create('labels', { executionProviders: ['wasm'] });
    const { y } = await session.run({ x: new Tensor('float32', [1, 2, 3, 4], [2, 2]) });
    equal(y.data, [1, 2, 3, 4]);
    equal(
      [JSON.stringify(session.outputMetadata)],
      ['[{"name":"y","isTensor":true,"type":"float32","shape":["",2],"keys":["cat","dog"]}]'],
    );
    await session.release();
  },

  'ONNX models as bytes': async () => {
    const bytes = await (await fetch('add.onnx')).arrayBuffer();
    await fails(() => InferenceSession.create(bytes), 'an ONNX file.*export SCRIPT.js -o DIR.*env.exports');
    env.exports = 'exported';
    try {
      await fails(() => InferenceSession.create(bytes), 'an ONNX file, and env.exports has no export of it.*404');
    } finally {
      env.exports = undefined;
    }
  },

  'where nothing may be stored': async () => {
    env.wasm.proxy = false;
    const refusing = (name) => {
      const error = new DOMException(`no ${name} here ${Math.random()}`, 'SecurityError');
      return () => Promise.reject(error);
    };
    const denied = new DOMException(`no storage here ${Math.random()}`, 'SecurityError');
    const throws = () => {
      throw denied;
    };
    const open = refusing('open');
    const cache = { match: async () => undefined, put: async () => undefined, delete: async () => true };
    const having = (members) => () => ({ open: async () => ({ ...cache, ...members }) });
    const put = refusing('put');
    const brokenOff = () => Promise.reject(new TypeError('network error'));
    const real = Object.getOwnPropertyDescriptor(globalThis, 'caches'); // none if it is the prototype's
    const said = listening('warn');
    try {
      for (const [get, ...words] of [
        [throws, 'storage'],
        [() => ({ open }), 'open'],
        [having({ match: refusing('match'), put }), 'match'],
        [having({ put }), 'put'],
        [having({ put: brokenOff })],
      ]) {
        said.length = 0;
        Object.defineProperty(globalThis, 'caches', { get, configurable: true });
        for (const _ of [1, 2]) {
          const session = await create('add', { cache: true });
          equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
          await session.release();
        }
        const reasons = said.map((text) => /fetched each time: no (\w+) here/.exec(text)?.[1]);
        equal(reasons, words);
      }
    } finally {
      said.stop();
      if (real) Object.defineProperty(globalThis, 'caches', real);
      else delete globalThis.caches;
    }
  },

  'what is left out is said': async () => {
    const said = listening('warn');
    const session = await InferenceSession.create('wasm.pyort', {
      executionProviders: ['webnn', 'webgpu', 'cpu'],
    });
    said.stop();
    equal(said, [
      'py_ort: session: left out: webnn: the model was exported without it (py-ort export --provider webnn); ' +
        'webgpu: the model was exported without it (py-ort export --provider webgpu)',
    ]);
    await session.release();
    await fails(
      () => create('wasm', { executionProviders: ['webgpu'] }),
      'no execution provider is available: webgpu: the model',
    );
    for (const executionProviders of [['gpu'], ['wasm', 'gpu'], ['webgl', 'gpu']])
      await fails(
        () => create('add', { executionProviders }),
        'no execution provider "gpu"; there are webgpu, webnn, webgl, wasm',
      );
    for (const [executionProviders, words] of [
      [['wasm', 'cpu'], 'provider wasm is named twice: the first place counts'],
      [['wasm', 'qnn'], 'left out: qnn: py_ort has no such provider in a page'],
      [['webgpu', 'webgl', 'wasm', 'webgpu'], 'provider webgpu is named twice: the first place counts'],
      [['wasm', 'webgpu'], ''],
      [[], ''],
      [undefined, ''],
    ]) {
      const said = listening('warn');
      const session = await InferenceSession.create('add.pyort', { executionProviders });
      said.stop();
      if (!said.join(', ').replaceAll('py_ort: session: ', '').startsWith(words) || Boolean(words) !== said.length > 0)
        throw new Error(`${executionProviders}: ${said}`);
      equal(session.executionProviders, executionProviders?.[0] === 'webgpu' ? ['webgpu', 'wasm'] : ['wasm']);
      await session.release();
    }
    await fails(
      () => create('add', { executionProviders: ['wasm', { name: 'webgpu', preferredLayout: 'x' }] }),
      'preferredLayout',
    );
  },

  'a provider without a device is said, wherever it stands': async () => {
    env.wasm.proxy = false; // because the page's own navigator matters
    for (const executionProviders of [
      ['wasm', { name: 'webgpu', deviceId: 77 }],
      [{ name: 'webgpu', deviceId: 77 }, 'wasm'],
    ]) {
      const said = listening('warn');
      Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => null }, configurable: true });
      try {
        const session = await create('add', { executionProviders });
        equal(session.executionProviders, ['wasm']);
        await session.release();
      } finally {
        said.stop();
        delete navigator.gpu;
      }
      if (said.length !== 1 || !/left out: webgpu: .*adapter/.test(said[0])) throw new Error(`${said}`);
    }
  },
};
