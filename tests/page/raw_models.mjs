// Cases of tests/page/test_raw_models.py: models that were not exported, in a page.
import { ErrorCode, env, InferenceSession, RuntimeError, Tensor } from './py_ort.mjs';
import { PageCompiler } from './py_ort_compiler.mjs';
import { fallbacks } from './raw_fallbacks.mjs';

const said = [];
for (const method of ['warn', 'error']) console[method] = (...words) => said.push(words.join(' '));
env.wasm.proxy = new URL(location).searchParams.has('here') ? false : undefined;

export function check(right, what) {
  if (!right) throw new Error(`not so: ${typeof what === 'function' ? what() : what}`);
}

export async function refusal(work) {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('it was not refused');
}

const bytes = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());
export const x = () => new Tensor('float32', [1, 2, 3], [1, 3]);
export const scale = () => new Tensor('float32', [10, 20, 30]);
export const wasm = { executionProviders: ['wasm'] };

export async function adds(session, engine) {
  check(session.engine === engine, () => `the engine is ${session.engine}`);
  const { y } = await session.run({ x: x(), scale: scale() });
  check(y instanceof Tensor && String(y.data) === '11,22,33' && String(y.dims) === '1,3', () => `y is ${y.data}`);
  return y;
}

export function useFallback(flavor = 'wasm') {
  env.fallback = () => import(`./peer/ort.${flavor}.bundle.min.mjs`);
}

const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const compiler = new URL(location).searchParams.get('compiler');

function useCompiler() {
  env.compiler = compiler;
}

async function metrics() {
  const text = await (await fetch(`${compiler}metrics`)).text();
  return Object.fromEntries(
    [...text.matchAll(/^py_ort_compile_server_(\w+) (.*)$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
}

const cases = {
  ...fallbacks,

  async 'without a fallback it is refused as ever'() {
    const error = await refusal(InferenceSession.create('add.onnx', wasm));
    check(error instanceof RuntimeError && /is an ONNX file.*py-ort export/.test(error.message), error);
  },

  async 'URLs, bytes and blobs'() {
    useFallback();
    const raw = await bytes('add.onnx');
    const padded = new Uint8Array(raw.length + 32);
    padded.set(raw, 16);
    const forms = ['add.onnx', new URL('add.onnx', location), raw, raw.buffer, new Blob([raw])];
    for (const form of forms) await adds(await InferenceSession.create(form, wasm), 'fallback');
    await adds(await InferenceSession.create(padded.buffer, 16, raw.length, wasm), 'fallback');
    await adds(await InferenceSession.create('add.pyort', wasm), 'py_ort');
    const warnings = said.filter((line) => line.includes('env.fallback runs it'));
    check(warnings.length === 2, () => `${said}`);
    check(/\/add\.onnx is an ONNX file: .*`py-ort export MODEL\.onnx`/.test(warnings[0]), warnings[0]);
    check(warnings[1].includes(`of ${raw.length} bytes`), warnings[1]);
  },

  async 'a file of another version'() {
    useFallback();
    await adds(await InferenceSession.create('older.pyort', wasm), 'fallback');
    const alone = await refusal(InferenceSession.create('alone.pyort', wasm));
    check(/plans of version/.test(alone.message), alone);
    const given = await refusal(InferenceSession.create(await bytes('older.pyort'), wasm));
    check(/plans of version/.test(given.message), given);
  },

  async 'other faults are no matter of the fallback'() {
    let asked = 0;
    env.fallback = () => asked++;
    const damaged = await refusal(InferenceSession.create('damaged.pyort', wasm));
    check(/damaged/.test(damaged.message), damaged);
    check(/answered 404/.test((await refusal(InferenceSession.create('none.onnx', wasm))).message), 'it was found');
    check(asked === 0, 'the fallback was asked');
    const empty = await refusal(InferenceSession.create('add.onnx', wasm));
    check(/env\.fallback gives no module/.test(empty.message), empty);
  },

  async 'a fallback that is py_ort itself'() {
    const own = await import('./py_ort.mjs');
    for (const module of [own, { default: own }]) {
      env.fallback = () => module;
      const error = await refusal(InferenceSession.create('add.onnx', wasm));
      check(
        /add\.onnx is an ONNX file.* gives py_ort itself, because an import map .*the URL/.test(error.message),
        error,
      );
    }
    useFallback();
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
  },

  async 'helpers of wrong types, and none'() {
    const create = () => refusal(InferenceSession.create('add.onnx', wasm));
    for (const none of [null, undefined]) {
      Object.assign(env, { compiler: none, fallback: none });
      check(/is an ONNX file.*py-ort export/.test((await create()).message), 'there is a helper');
    }
    useFallback();
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
    for (const compiler of [3, true, '', {}, () => 'nowhere/', Promise.resolve('nowhere/')]) {
      env.compiler = compiler;
      const error = await create();
      check(error instanceof RuntimeError && /^env\.compiler is the URL of a .*, not /.test(error.message), error);
    }
    env.compiler = null;
    for (const fallback of [3, 'onnxruntime-web', {}, await import('./peer/ort.wasm.bundle.min.mjs')]) {
      env.fallback = fallback;
      const error = await create();
      check(error instanceof RuntimeError && /^env\.fallback is a function, .*, not /.test(error.message), error);
    }
  },

  async 'what the other engine refuses'() {
    useFallback();
    const error = await refusal(InferenceSession.create('unknown.onnx', wasm));
    check(
      error instanceof RuntimeError && /unknown\.onnx is an ONNX file, and the engine of env/.test(error.message),
      error,
    );
    const session = await InferenceSession.create('add.onnx', wasm);
    const missing = await refusal(session.run({ x: x() }));
    const isOurs = missing instanceof RuntimeError && /^the engine of env\.fallback: .*scale/.test(missing.message);
    check(isOurs && missing.cause instanceof Error && !(missing.cause instanceof RuntimeError), missing);
    check(error.cause instanceof Error && !(error.cause instanceof RuntimeError), error.cause);
    const strange = await refusal(session.run({ x: x(), scale: [scale()] }));
    for (const fetches of [['nope', 'y'], { nope: null }]) {
      const unknown = await refusal(session.run({ x: x(), scale: scale() }, fetches));
      const { invalid_argument } = ErrorCode;
      check(unknown.code === invalid_argument && /no output named "nope"; it has "y"/.test(unknown.message), unknown);
    }
    check(/sequence or an optional/.test(strange.message), strange);
    check(/another engine runs/.test((await refusal(session.placement())).message), 'it has a placement');
    check(/py-ort export/.test((await refusal(session.generate([1]).result)).message), 'it generates');
    await Promise.all([session.release(), session.release()]);
    await session.release();
  },

  async 'long messages are shortened'() {
    const url = `data:application/octet-stream;base64,${btoa(String.fromCharCode(...(await bytes('forms.onnx'))))}`;
    check(url.length > 300, url);
    const { message } = await refusal(InferenceSession.create(url, wasm));
    check(message.startsWith(`${url.slice(0, 200)}… is an ONNX file`) && !message.includes(url), message);
    env.compiler = location.origin;
    const { message: page } = await refusal(InferenceSession.create('add.onnx', wasm));
    check(/answered 404: a page, "Error response .*": is it the URL of a compile server\?/.test(page), page);
    check(page.length < 400 && !page.includes('<'), page);
  },

  async 'the same tensors go in and out of both engines'() {
    useFallback();
    const exported = await InferenceSession.create('add.pyort', wasm);
    const raw = await InferenceSession.create('add.onnx', wasm);
    const { y } = await exported.run({ x: x(), scale: scale() });
    const { y: again } = await raw.run({ x: y, scale: scale() });
    const { y: last } = await exported.run({ x: again, scale: scale() });
    check(String(last.data) === '31,62,93', last.data);
    check(String(raw.inputNames) === 'x,scale' && String(raw.outputNames) === 'y', raw.inputNames);
    check(JSON.stringify(raw.inputMetadata) === JSON.stringify(exported.inputMetadata), () =>
      JSON.stringify(raw.inputMetadata),
    );
    const target = new Tensor('float32', new Float32Array(3), [1, 3]);
    await raw.run({ x: x(), scale: scale() }, { y: target });
    check(String(target.data) === '11,22,33', target.data);
    const runs = [1, 2, 3, 4].map(() => adds(raw, 'fallback'));
    await Promise.all(runs);
    check(raw.lastRun.run_ms > 0, 'a run takes time');
  },

  async 'text and integers'() {
    useFallback();
    const raw = await InferenceSession.create('forms.onnx', wasm);
    const feeds = {
      s: new Tensor('string', ['a', 'ä€', ''], [3]),
      i: new Tensor('int64', [1n, -2n, 3n], [3]),
      b: new Tensor('bool', [true, false, true], [3]),
    };
    const found = await raw.run(feeds);
    const exported = await (await InferenceSession.create('forms.pyort', wasm)).run(feeds);
    for (const [name, { type, dims, data }] of Object.entries(exported))
      check(
        found[name].type === type &&
          String(found[name].dims) === String(dims) &&
          String(found[name].data) === String(data),
        () => `${name}: ${found[name].type} ${found[name].data}`,
      );
  },

  async 'aborted and released'() {
    useFallback();
    const reason = new Error('mine');
    const aborted = await refusal(InferenceSession.create('add.onnx', { ...wasm, signal: AbortSignal.abort(reason) }));
    check(aborted === reason || aborted.name === 'AbortError', aborted);
    const session = await InferenceSession.create('add.onnx', wasm);
    const running = refusal(session.run({ x: x(), scale: scale() }));
    await session.release();
    check(/released/.test((await running).message), 'it ran');
    check((await refusal(session.run({ x: x(), scale: scale() }))) instanceof Error, 'it runs on');
  },

  async 'compiled by URL'() {
    useCompiler();
    const stages = [];
    const onProgress = (stage) => stages.push(stage);
    await adds(await InferenceSession.create('add.onnx', { ...wasm, onProgress }), 'py_ort');
    check(stages.length > 0, 'no progress was told');
    const { requests_total: asked, uploads_total } = await metrics();
    check(asked > 0 && uploads_total === 0, `${asked} requests, ${uploads_total} uploads`);
    // The second time the server only says that it has not changed; the export is in the browser's cache.
    await adds(await InferenceSession.create(new URL('add.onnx', location), wasm), 'py_ort');
    await adds(await InferenceSession.create('older.pyort', wasm), 'py_ort');
    const { requests_total: then, compiled_total: compiled } = await metrics();
    check(then === asked + 2 && compiled === 1, `${then - asked} requests, ${compiled} compiled`);
    check(said.length === 0, said);
  },

  async 'compiled, and replaced at its URL'() {
    useCompiler();
    const replace = (by) => tell({ replace: 'changing.onnx', by });
    const result = async (options) => {
      const session = await InferenceSession.create('changing.onnx', { ...wasm, ...options });
      const { y } = await session.run({ x: x(), scale: scale() });
      return String(y.data);
    };
    const cache = await caches.open('py_ort');
    const exports = async () => (await cache.keys()).filter(({ url }) => url.includes('/models/'));
    /** The only export in the cache, which is complete a moment after its session is made. */
    const other = async (before) => {
      for (;;) {
        const [found, ...more] = await exports();
        check(more.length === 0, () => `${more.length + 1} exports are kept`);
        if (found && found.url !== before) return found;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await replace('add.onnx');
    check((await result()) === '11,22,33', 'the first model');
    const first = await other();
    await replace('times.onnx');
    check((await result({ cache: false })) === '10,40,90', 'the second model, past the cache');
    check((await exports())[0].url === first.url, 'cache: false changed the cache');
    check((await result()) === '10,40,90', 'the second model');
    const second = await other(first.url);
    // An unchanged model comes from the cache, whatever is there.
    await cache.put(second, await fetch('add.pyort'));
    check((await result()) === '11,22,33', 'the export was downloaded again');
    check((await result({ cache: false })) === '10,40,90', 'cache: false read the cache');
    const { compiled_total: compiled } = await metrics();
    check(compiled === 2, `${compiled} compiled`);
    // Without the server the last result remains.
    const online = globalThis.fetch;
    globalThis.fetch = (url, init) =>
      String(url).startsWith(compiler) ? Promise.reject(new TypeError('no network')) : online(url, init);
    check((await result()) === '11,22,33', 'the last result');
    check(
      said.some((line) => /env\.compiler cannot be reached \(no network\)/.test(line)),
      said,
    );
    check(/no network/.test((await refusal(result({ cache: false }))).message), 'cache: false read the cache');
    await cache.delete(second);
    check(/no network/.test((await refusal(result())).message), 'nothing is kept');
  },

  async 'compiled from bytes'() {
    useCompiler();
    const raw = await bytes('forms.onnx');
    const before = await metrics();
    const url = URL.createObjectURL(new Blob([raw]));
    for (const form of [raw, raw.buffer, new Blob([raw]), url]) {
      const session = await InferenceSession.create(form, wasm);
      check(session.engine === 'py_ort' && session.inputNames.length === 3, session.engine);
    }
    const { uploads_total: uploads } = await metrics();
    check(uploads - before.uploads_total <= 1, `${uploads} uploads`);
  },

  async 'what cannot be compiled'() {
    useCompiler();
    const error = await refusal(InferenceSession.create('unknown.onnx', wasm));
    check(/unknown\.onnx is an ONNX file, and env\.compiler does not help: .*Frobnicate/.test(error.message), error);
    useFallback();
    check(
      /env\.fallback cannot/.test((await refusal(InferenceSession.create('unknown.onnx', wasm))).message),
      'it runs',
    );
    env.compiler = new URL('nowhere/', location);
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
    check(
      said.some((line) => /env\.compiler does not help: env\.compiler answered 404/.test(line)),
      said,
    );
    const own = new Error('mine');
    const aborted = await refusal(InferenceSession.create('add.onnx', { ...wasm, signal: AbortSignal.abort(own) }));
    check(aborted === own || aborted.name === 'AbortError', aborted);
  },

  async 'in the page'() {
    const packages = ['numpy', new URL('wheels/py_ort.whl', location).href];
    const compiler = new PageCompiler({ pyodide: 'pyodide.mjs', packages, providers: ['wasm'] });
    env.compiler = compiler;
    const stages = [];
    const onProgress = (stage) => stages.push(stage);
    await adds(await InferenceSession.create('add.onnx', { ...wasm, onProgress }), 'py_ort');
    const expected = ['loading Python', 'loading numpy', 'loading py_ort.whl', 'compiling for wasm'];
    check(
      expected.every((stage) => stages.includes(stage)),
      () => stages,
    );
    // Two at once, one after the other; Python is loaded once.
    stages.length = 0;
    const raw = await bytes('add.onnx');
    const both = [raw, new Blob([raw])].map((form) => InferenceSession.create(form, { ...wasm, onProgress }));
    for (const session of await Promise.all(both)) await adds(session, 'py_ort');
    check(!stages.includes('loading Python'), () => stages);
    const error = await refusal(InferenceSession.create('unknown.onnx', wasm));
    check(
      /env\.compiler does not help: py_ort\.exceptions\.NotImplemented: node y/.test(error.message) &&
        !/Traceback/.test(error.message),
      error,
    );
    const ending = new AbortController();
    const reason = new Error('mine');
    const endless = InferenceSession.create(await bytes('endless.onnx'), {
      ...wasm,
      signal: ending.signal,
      onProgress: (stage) => stage === 'for ever' && ending.abort(reason),
    });
    check((await refusal(endless)) === reason, 'it was not aborted');
    await adds(await InferenceSession.create('add.onnx', wasm), 'py_ort');
    compiler.terminate();
  },

  async 'in the page, with what cannot be loaded'() {
    const compile = (options) => new PageCompiler(options).compile(new Uint8Array(8));
    const nowhere = await refusal(compile({ pyodide: 'nowhere.mjs', packages: [] }));
    check(/^Pyodide could not be loaded from http.*nowhere\.mjs: /.test(nowhere.message), nowhere);
    const missing = await refusal(compile({ pyodide: 'pyodide.mjs', packages: ['numpy', 'missing'] }));
    check(missing.message === 'missing could not be loaded into Pyodide: ValueError: no wheel of it', missing);
    useFallback();
    env.compiler = new PageCompiler({ pyodide: 'nowhere.mjs', packages: [] });
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
    check(
      said.some((line) => /env\.compiler does not help: Pyodide could not be loaded/.test(line)),
      said,
    );
  },

  async 'outputs on the GPU'() {
    useFallback('webgpu');
    const options = { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' };
    const raw = await InferenceSession.create('add.onnx', options);
    const { y } = await raw.run({ x: x(), scale: scale() });
    check(y.location === 'gpu-buffer' && y.gpuBuffer instanceof GPUBuffer, y.location);
    const { y: again } = await raw.run({ x: y, scale: scale() });
    check(String(await again.getData()) === '21,42,63', 'the sum');
    const exported = await InferenceSession.create('add.pyort', wasm);
    const { y: last } = await exported.run({ x: y, scale: scale() });
    check(String(last.data) === '21,42,63', last.data);
    y.dispose();
  },
};

export const names = Object.keys(cases);
export const run = (name) => cases[name]();
