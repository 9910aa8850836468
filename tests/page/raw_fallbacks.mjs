// Cases of raw_models.mjs: engines of env.fallback that do not do what onnxruntime-web does.
import { env, InferenceSession, RuntimeError, Tensor } from './py_ort.mjs';
import { adds, check, refusal, useFallback, wasm, x } from './raw_models.mjs';

export const fallbacks = {
  async 'a fallback whose create never ends'() {
    const peer = await import('./peer/ort.wasm.bundle.min.mjs');
    let [begin, late, never] = [undefined, undefined, true];
    const begun = new Promise((resolve) => (begin = resolve));
    const released = [];
    const create = (...given) => {
      if (!never) return peer.InferenceSession.create(...given);
      begin();
      return new Promise((resolve) => (late = resolve));
    };
    env.fallback = () => ({ ...peer, InferenceSession: { create } });
    const ending = new AbortController();
    const first = InferenceSession.create('add.onnx', { ...wasm, signal: ending.signal });
    await begun;
    const next = InferenceSession.create('times.onnx', wasm);
    never = false;
    ending.abort(new Error('enough'));
    check((await refusal(first)).message === 'enough', 'it ended for another reason');
    check((await next).engine === 'fallback', 'the next one waits');
    late({ inputNames: [], outputNames: [], release: async () => released.push('late') });
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
    check(String(released) === 'late', 'a session that came too late was not released');
  },

  async 'a fallback that calls py_ort'() {
    const create = async (model, options) => {
      await Promise.resolve();
      return InferenceSession.create(/times/.test(model) ? 'add.pyort' : model, options);
    };
    env.fallback = () => ({ Tensor, InferenceSession: { create } });
    const error = await refusal(InferenceSession.create('add.onnx', wasm));
    check(/add\.onnx is an ONNX file.*create calls py_ort's own create for the same model/.test(error.message), error);
    await adds(await InferenceSession.create('times.onnx', wasm), 'fallback');
    useFallback();
    await adds(await InferenceSession.create('add.onnx', wasm), 'fallback');
  },

  async 'an engine with another API'() {
    const made = (run) => ({ inputNames: ['x'], outputNames: ['y'], run, release: async () => undefined });
    const using = (create) => {
      env.fallback = () => ({ Tensor, InferenceSession: { create } });
      return InferenceSession.create('add.onnx', wasm);
    };
    const rows = [
      [() => using(5), /gives no module with onnxruntime-web's API/],
      [() => using(async () => undefined), /create gave undefined, and not a session/],
      [() => using(() => ({ inputNames: [] })), /create gave Object, and not a session/],
      [async () => (await using(() => made(() => undefined))).run({ x: x() }), /run gave undefined, and not a tensor/],
      [
        async () => (await using(() => made(async () => ({ y: 5 })))).run({ x: x() }),
        /gave a number for the output "y"/,
      ],
    ];
    for (const [work, words] of rows) {
      const error = await refusal(work());
      check(error instanceof RuntimeError && words.test(error.message), error);
    }
    env.fallback = () => null;
    check(/gives no module/.test((await refusal(InferenceSession.create('add.onnx', wasm))).message), 'it is a module');
  },
};
