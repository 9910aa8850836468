// Downloads of models, from the origin ?models=, and of the runtime.
// ?page keeps sessions out of workers, ?cache keeps models in a cache.
import { scale, x } from './javascript_parts.mjs';
import { env, InferenceSession } from './py_ort.mjs';

const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const options = { executionProviders: ['wasm'], cache: query.has('cache') };
const at = (name) => new URL(name, query.get('models')).href;
if (query.has('page')) env.wasm.proxy = false;

async function y(name) {
  const session = await InferenceSession.create(at(name), options);
  const { y } = await session.run({ x, scale });
  await session.release();
  return [...y.data];
}

const cases = {
  /** More downloads than a browser has connections to a server stall, and are aborted when the test says so. */
  async aborted() {
    const abort = new AbortController();
    const loading = Array.from({ length: 8 }, (_, i) =>
      InferenceSession.create(at(`add.pyort?${i}`), { ...options, signal: abort.signal }).catch((error) => error),
    );
    await fetch('/now');
    abort.abort(new Error('mine'));
    const reasons = await Promise.all(loading);
    const kept = await (await caches.open('py_ort')).keys();
    return { reasons: reasons.map(({ message }) => message), y: await y('wasm.pyort'), kept: kept.length };
  },

  /** Wrong settings of the runtime, one after the other, and then right ones. */
  async corrected() {
    const wrong = [
      { wasmPaths: '/nowhere/' },
      { wasmBinary: new Uint8Array(3) },
      { wasmPaths: { wasm: '/held/core.wasm' }, initTimeout: 1 },
    ];
    const { wasmPaths } = env.wasm;
    const told = [];
    for (const settings of [...wrong, {}]) {
      Object.assign(env.wasm, { wasmPaths, wasmBinary: undefined, initTimeout: undefined }, settings);
      told.push(await y('wasm.pyort').catch(({ message }) => message));
    }
    return told;
  },
};

cases[query.get('case')]().then(tell, (error) => tell({ error: `${error.stack ?? error}` }));
