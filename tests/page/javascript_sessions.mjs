// Cases of javascript_api.mjs: sessions, their options, and their messages.
import { equal, fails, lasting } from './javascript_checks.mjs';
import { create, executionProviders, listening, scale, x } from './javascript_parts.mjs';
import { env, InferenceSession, Tensor } from './py_ort.mjs';

const waves = Float32Array.from({ length: 256 }, (_, i) => Math.sin(i));
const image = new Tensor('float32', waves, [1, 4, 8, 8]);

export const cases = {
  'names that objects of JavaScript have': async () => {
    const session = await create('odd_names');
    const [one, two] = [new Tensor('float32', [1, 2]), new Tensor('float32', [3, 4])];
    const feeds = { constructor: one, ['__proto__']: two };
    const outputs = await session.run(feeds);
    equal(Object.keys(outputs), ['toString', 'tag', 'signal']);
    equal(outputs.toString.data, [4, 6]);
    await fails(() => session.run({ ['__proto__']: two }), 'no feed for the input "constructor"');
    // Outputs have the names of options.
    equal(Object.keys(await session.run(feeds, { tag: 'a' })), ['toString', 'tag', 'signal']);
    equal(Object.keys(await session.run(feeds, { tag: null })), ['tag']);
    await fails(() => session.run(feeds, { tag: one, signal: 7 }), 'fetches: "signal" is a Tensor');
  },

  'where its nodes run': async () => {
    const bytes = new Uint8Array(await (await fetch('strings.pyort')).arrayBuffer());
    for (const model of ['strings.pyort', bytes]) {
      const session = await lasting(InferenceSession.create(model, { executionProviders }));
      equal(session.engine, 'py_ort');
      const nodes = await session.placement();
      equal(nodes.map(({ op_type, provider }) => `${op_type} ${provider}`).sort(), ['Add webgpu', 'Identity wasm']);
      equal(nodes.map(({ reason }) => reason !== '').sort(), [false, true]);
    }
    const wasm = await create('parted', { executionProviders: ['wasm'] });
    equal(new Set((await wasm.placement()).map(({ provider }) => provider)), new Set(['wasm']));
  },

  'on WebGL': async () => {
    const session = await create('webgl', { executionProviders: ['webgl'] });
    equal(session.executionProviders, ['webgl', 'wasm']);
    for (let run = 0; run < 2; run++) equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    const other = { executionProviders: [{ name: 'webgl', powerPreference: 'low-power' }] };
    await fails(() => create('webgl', other), 'device 0 was opened without powerPreference');
    const gpu = await create('add', { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' });
    const { y } = await gpu.run({ x, scale });
    equal(y.location, 'gpu-buffer');
    equal((await session.run({ x: y, scale })).y.data, [21, 42, 63]);
    for (const [preferredOutputLocation, words] of [
      ['gpu-buffer', 'provider "webgl" has no tensors that pages hold: leave out preferredOutputLocation'],
      ['texture', 'preferredOutputLocation is one of'],
    ])
      await fails(() => create('webgl', { executionProviders: ['webgl'], preferredOutputLocation }), words);
    for (const each of [session, gpu]) await each.release();
  },

  'a WebGL context that is lost': async () => {
    if (env.wasm.proxy !== false) return; // a worker's context is out of reach
    const { getContext } = HTMLCanvasElement.prototype;
    const contexts = [];
    HTMLCanvasElement.prototype.getContext = function (...how) {
      contexts.push(getContext.apply(this, how));
      return contexts.at(-1);
    };
    const session = await create('webgl', { executionProviders: ['webgl'] });
    for (let run = 1; run < 4; run++) {
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
      const context = contexts.at(-1);
      const during = run === 2 ? session.run({ x, scale }) : undefined;
      const lost = new Promise((resolve) => context.canvas.addEventListener('webglcontextlost', resolve));
      context.getExtension('WEBGL_lose_context').loseContext();
      await lost;
      if (during) equal((await during).y.data, [11, 22, 33]);
    }
    equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    equal([contexts.filter((each) => !each.isContextLost()).length], [1]);
    HTMLCanvasElement.prototype.getContext = getContext;
  },

  'a tensor of one element for a scalar': async () => {
    const session = await create('clip');
    const x = new Tensor('float32', [1, 2, 3], [3]);
    for (const dims of [[], [1], [1, 1]]) {
      const { y } = await session.run({ x, low: new Tensor('float32', [2], dims) });
      equal(y.data, [2, 2, 3]);
      equal(y.dims, [3]);
    }
    await fails(() => session.run({ x, low: new Tensor('float32', [2, 2]) }), '"low" wants shape \\[\\], got \\[2\\]');
  },

  'integers that a file has once': async () => {
    const { x, y } = await (await fetch('integer_products.json')).json();
    const session = await create('integer_products', { executionProviders: ['wasm'] });
    const outputs = await session.run({ x: new Tensor('float32', x, [2, 4, 8, 8]) });
    equal(outputs.y.data, y);
  },

  'pictures in files': async () => {
    const session = await create('decoder', { executionProviders: ['wasm'] });
    const bytes = async (file) => new Uint8Array(await (await fetch(file)).arrayBuffer());
    for (const kind of ['bmp', 'png', 'jpeg', 'webp']) {
      const file = await bytes(`picture.${kind}`);
      const { y } = await session.run({ x: new Tensor('uint8', file, [file.length]) });
      equal(y.dims, [21, 37, 3]);
      equal(y.data, await bytes(`picture.${kind}.pixels`));
    }
  },

  'options that are none': async () => {
    const failing = (options, words) =>
      fails(() => create('add', { executionProviders: [{ name: 'webgpu', ...options }] }), words);
    await failing({ bufferMode: 'x' }, 'no option "bufferMode"; it has deviceId, preferredLayout');
    await failing({ storageBufferCacheMode: 'big' }, 'one of disabled, lazyRelease, simple, bucket');
    for (const deviceId of [-1, 1.5, 1e9, 2 ** 32])
      await failing({ deviceId }, `a whole number from 0 to 999999999, not "${deviceId}"`);
    await fails(
      () => create('add', { executionProvider: ['wasm'] }),
      'no option "executionProvider"; it has executionP',
    );
    await fails(() => create('add', { logSeverityLevel: 7 }), 'is 0 to 4, not 7');
    await fails(() => create('add', null), 'options of a session are an object');
    await fails(() => create('add', { executionProviders: 'wasm' }), 'executionProviders is an array');
    await fails(() => create('add', { executionProviders: [null] }), 'provider is a name, or { name, … }, not null');
    await fails(() => create('add', { graphOptimizationLevel: 'most' }), 'one of disabled, .*not "most"');
    await fails(() => create('add', { executionMode: 'both' }), 'one of sequential, parallel, not "both"');
    await fails(() => create('add', { toString: 1 }), 'no option "toString"');
    const session = await create('add');
    for (const [signal, what] of [
      [{}, 'Object'],
      [0, 'a number'],
      ['', 'a string'],
      [new AbortController(), 'AbortController'],
    ]) {
      const words = `signal is an AbortSignal, not ${what}`;
      await fails(() => create('add', { signal }), words);
      await fails(() => session.run({ x, scale }, { signal }), words);
      await fails(() => session.generate([1], { signal }).result, words);
    }
    await fails(() => session.run({ x, scale }, ['y'], { sgnal: 1 }), 'run has no option "sgnal"');
    await fails(() => session.run({ x, scale }, []), 'fetches is empty');
    await fails(() => session.run({ x, scale }, ['z']), 'no output named "z"');
    await fails(() => session.run({ x }), 'no feed for the input "scale"');
    await fails(() => session.run({ x, scale }, { terminate: true }), 'terminate');
    await session.release();
    await fails(() => session.run({ x, scale }), 'released');
  },

  'what does nothing is said': async () => {
    const said = listening('warn');
    try {
      const options = { graphOptimizationLevel: 'basic', enableMemPattern: true, interOpNumThreads: 3 };
      const session = await create('add', { ...options, logId: 'mine' });
      equal(said, ['py_ort: mine: session: without effect here: graphOptimizationLevel, interOpNumThreads']);
      for (const _ of [1, 2]) await session.run({ x, scale }, { tag: 'a', logVerbosityLevel: 0 });
      await fails(() => session.run({ x, scale }, { terminate: true }), 'terminate');
      for (const option of ['signal', 'tag', 'extra', 'graphId'])
        equal((await session.run({ x, scale }, { [option]: null })).y.data, [11, 22, 33]);
      await fails(() => session.run({ x, scale }, { z: null }), 'no output named "z"');
      equal(said.slice(1), ['py_ort: mine: session: run options without effect here: tag']);
      const preferred = [{ name: 'webgpu', preferredLayout: 'NCHW' }];
      await (await create('add', { executionProviders: preferred, logSeverityLevel: 3 })).release();
      equal(said.slice(2), []);
      const webgl = { name: 'webgl', deviceId: 0, contextId: 'webgl2', powerPreference: undefined, pack: true };
      const onWebgl = await create('webgl', { executionProviders: [webgl] });
      await onWebgl.release();
      equal(said.slice(2), ['py_ort: session: without effect here: webgl.contextId, webgl.pack']);
      env.webgl.async = true;
      const flagged = await create('webgl', { executionProviders: ['webgl'] });
      await flagged.release();
      equal(said.slice(3), ['py_ort: session: without effect here: env.webgl.async']);
    } finally {
      delete env.webgl.async;
      said.stop();
    }
  },

  'a profile': async () => {
    const session = await create('add', { enableProfiling: true });
    const begun = performance.now();
    // The clock of pages that are not isolated counts whole milliseconds in Firefox, and most runs are shorter.
    do await session.run({ x, scale });
    while (performance.now() < begun + 50);
    const events = session.endProfiling();
    const named = (name) => events.filter((event) => event.name === name);
    const spent = named('model_run').reduce((sum, { dur }) => sum + dur, 0);
    if (!(spent > 0) || named('fetch the weights').length !== 1) throw new Error(JSON.stringify(events));
    equal(session.endProfiling(), []);
    const kernels = [];
    env.webgpu.profiling = { mode: 'default', ondata: (data) => kernels.push(data) };
    await session.run({ x, scale });
    env.webgpu.profiling = {};
    await session.run({ x, scale });
    const timed = kernels.every(({ startTime, endTime, version }) => endTime >= startTime && version === 1);
    if (!timed || kernels.some(({ kernelType }) => kernelType !== 'Add')) throw new Error(JSON.stringify(kernels));
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
    } finally {
      globalThis.Worker = Real;
    }
  },

  'released during a run': async () => {
    const session = await create('endless', { executionProviders: ['wasm'] });
    const other = await create('add');
    const run = session.run({ x: new Tensor('float32', [1, 2], [2]) }, { signal: new AbortController().signal });
    const ended = fails(() => run, 'this session was released');
    await new Promise((resolve) => setTimeout(resolve, 100));
    await session.release();
    await ended;
    equal(await (await other.run({ x, scale })).y.getData(), [11, 22, 33]);
  },

  'kept in the cache': async () => {
    await caches.delete('py_ort');
    await (await create('add', { cache: true })).release();
    const url = new URL('add.pyort', location.href).href;
    const kept = await caches.open('py_ort');
    while (!(await kept.match(url))) await new Promise((resolve) => setTimeout(resolve, 10)); // after the session
    await kept.put(url, await fetch('strings.pyort'));
    const other = await create('add', { cache: true });
    equal(other.inputNames, ['x', 's']);
    await other.release();
    // An entry of another version of the runtime, or one that was damaged or cut off since, is fetched again.
    const bytes = new Uint8Array(await (await fetch('add.pyort')).arrayBuffer());
    const cut = new Response(bytes.slice(0, 1000));
    bytes[16 + new DataView(bytes.buffer).getUint32(8, true) + 30] ^= 1;
    for (const useless of [await fetch('add.onnx'), new Response(bytes), cut]) {
      await kept.put(url, useless);
      const again = await create('add', { cache: true });
      equal((await again.run({ x, scale })).y.data, [11, 22, 33]);
    }
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
  },

  'from bytes, blobs and parts': async () => {
    const bytes = await (await fetch('add.pyort')).arrayBuffer();
    for (const model of [bytes, new Uint8Array(bytes), new Blob([bytes]), new URL('add.pyort', location.href)]) {
      const session = await lasting(InferenceSession.create(model));
      equal((await session.run({ x, scale })).y.data, [11, 22, 33]);
    }
    const first = await (await fetch('parted.pyort')).blob();
    await fails(() => InferenceSession.create(first), 'goes on in the file parted.pyort.1: give its URL');
    const none = 'parted.pyort.1, which externalData does not have: it has none';
    await fails(() => InferenceSession.create(first, { externalData: [] }), none);
    const files = [1, 2, 3, 4, 5, 6, 7, 8].map((i) => `parted.pyort.${i}`);
    const externalData = files.map((file) => ({ path: file, data: file }));
    const given = await lasting(InferenceSession.create(first, { externalData, executionProviders }));
    const parted = await create('parted');
    const [a, b] = [(await parted.run({ x: image })).y, (await given.run({ x: image })).y];
    equal(a.data, [...b.data]);
    if (!a.data.some((value) => value !== 0)) throw new Error('all zeros');
  },

  'on wasm alone, the same numbers': async () => {
    const [gpu, cpu] = [await create('parted'), await create('parted', { executionProviders: ['wasm'] })];
    equal([gpu.executionProviders, cpu.executionProviders], ['webgpu,wasm', 'wasm']);
    const [a, b] = [(await gpu.run({ x: image })).y.data, (await cpu.run({ x: image })).y.data];
    if (![...a].every((value, i) => Math.abs(value - b[i]) < 1e-4 * (1 + Math.abs(value))))
      throw new Error(`${a}; ${b}`);
  },

  'what the model says of itself': async () => {
    const session = await create('strings');
    const [first, second] = session.inputMetadata.map((each) => JSON.stringify(each));
    equal([first], ['{"name":"x","isTensor":true,"type":"float32","shape":[4]}']);
    equal([second], ['{"name":"s","isTensor":true,"type":"string","shape":["N"]}']);
    const names = session.outputMetadata.map(({ name }) => name);
    equal(names, session.outputNames);
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
    const onnx = 'add.onnx is an ONNX file.*py-ort export MODEL.onnx.*py-ort serve';
    await fails(() => InferenceSession.create('add.onnx'), onnx);
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

  'what is damaged or cut off': async () => {
    const spoilt =
      'parted.pyort.2.* is damaged: its .* bytes of data from .* not those that were written.*Load it past';
    await fails(() => create('spoilt/parted'), spoilt);
    await fails(() => create('spoilt/parted', { executionProviders: ['wasm'] }), spoilt);
    const cutOff = 'parted.pyort.2 broke off .it ended after 1948 of 2048.*copy the file again';
    await fails(() => create('cut_off/parted'), cutOff);
    const bytes = new Uint8Array(await (await fetch('wasm.pyort')).arrayBuffer());
    const start = 16 + new DataView(bytes.buffer).getUint32(8, true);
    bytes[start + 30] ^= 1; // in its only plan: another plan would not be read
    await fails(() => InferenceSession.create(bytes), 'the model is damaged: its .* bytes of data from 0 on');
  },
};
