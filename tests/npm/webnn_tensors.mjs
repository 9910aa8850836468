// Sessions on an MLContext of the page's own, with its MLTensors: names and behaviour are onnxruntime-web's.
import { equal, fails, outcomesOf } from './javascript_checks.mjs';
import { env, ErrorCode, InferenceSession, Tensor } from './py_ort.webnn.mjs';

const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
env.wasm.numThreads = 1;

const newContext = () => navigator.ml.createContext({ deviceType: 'cpu' });
const context = await newContext();
const webnn = (own) => ({ name: 'webnn', deviceType: 'cpu', context: own });
const create = (options, model = 'add.pyort', own = context) =>
  InferenceSession.create(model, { executionProviders: [webnn(own)], ...options });
const LEFT = { preferredOutputLocation: 'ml-tensor' };
const ARRAYS = {
  float32: Float32Array,
  float16: Float16Array,
  int64: BigInt64Array,
  int32: Int32Array,
  uint8: Uint8Array,
};

/** An MLTensor; without flags only graphs may use it. */
async function tensorOn(own, shape, values, dataType = 'float32', flags = { readable: true, writable: true }) {
  const tensor = await own.createTensor({ dataType, shape, ...flags, ...(values && { writable: true }) });
  if (values) own.writeTensor(tensor, ARRAYS[dataType].from(values));
  return tensor;
}
const from = (tensor, dims = tensor.shape, dataType = tensor.dataType) =>
  Tensor.fromMLTensor(tensor, { dataType, dims });
const read = async (tensor, own = context) => new ARRAYS[tensor.dataType](await own.readTensor(tensor));

const scale = new Tensor('float32', [10, 20, 30], [3]);
const x = () => new Tensor('float32', [1, 2, 3], [1, 3]);
const scaleMatrix = () => new Tensor('float32', [2, 0, 0, 3], [2, 2]);

/** The number of calls of the context's methods by `work`. */
async function calls(own, work) {
  const counts = { writeTensor: 0, readTensor: 0, createTensor: 0, dispatch: 0 };
  for (const name of Object.keys(counts))
    own[name] = (...given) => {
      counts[name]++;
      return MLContext.prototype[name].apply(own, given);
    };
  await work();
  for (const name of Object.keys(counts)) delete own[name];
  return counts;
}
async function failsWith(code, work, words) {
  await fails(async () => {
    try {
      await work();
    } catch (error) {
      if (error.code !== code) throw new Error(`code ${error.code}, not ${code}: ${error.message}`);
      throw error;
    }
  }, words);
}

const cases = {
  'fed and left without a copy': async () => {
    const session = await create(LEFT);
    equal(session.executionProviders, ['webnn', 'wasm']);
    const feeds = {
      x: from(await tensorOn(context, [1, 3], [1, 2, 3], 'float32', {})),
      scale: from(await tensorOn(context, [3], [10, 20, 30], 'float32', {})),
    };
    equal([feeds.x.location, feeds.x.type, ...feeds.x.dims], ['ml-tensor', 'float32', 1, 3]);
    await session.run(feeds);
    const { writeTensor, readTensor, dispatch } = await calls(context, () => session.run(feeds));
    equal([writeTensor, readTensor, dispatch], [0, 0, 1]);
    const { y } = await session.run(feeds);
    equal([y.location, y.type, ...y.dims, y.mlTensor instanceof MLTensor], ['ml-tensor', 'float32', 1, 3, true]);
    equal(await read(y.mlTensor), [11, 22, 33]);
    // The next run is fed the numbers that the page writes.
    context.writeTensor(feeds.x.mlTensor, Float32Array.of(4, 5, 6));
    equal(await (await session.run(feeds)).y.getData(), [14, 25, 36]);
    equal(await read(y.mlTensor), [11, 22, 33]);
    await session.release();
    equal(await y.getData(true), [11, 22, 33]);
  },

  'runs at the same time': async () => {
    const session = await create(LEFT);
    const fed = Array.from({ length: 12 }, (_, i) => ({ x: new Tensor('float32', [i, i, i], [1, 3]), scale }));
    const results = await Promise.all(fed.map((feeds) => session.run(feeds)));
    for (const [i, { y }] of results.entries()) equal(await y.getData(true), [10 + i, 20 + i, 30 + i]);
  },

  'preferred location, for all outputs and by name': async () => {
    for (const preferredOutputLocation of ['ml-tensor', { y: 'ml-tensor' }]) {
      const session = await create({ preferredOutputLocation });
      const { y } = await session.run({ x: x(), scale });
      await fails(() => y.data, 'ml-tensor.*await getData');
      await fails(() => y.gpuBuffer, 'in no GPU buffer');
      equal(await y.getData(), [11, 22, 33]);
      equal([y.location, ...y.data], ['cpu', 11, 22, 33]);
      y.dispose();
      await session.release();
    }
    const session = await create({ preferredOutputLocation: { y: 'cpu' } });
    equal([(await session.run({ x: x(), scale })).y.location], ['cpu']);
    await session.release();
    await failsWith(
      ErrorCode.invalid_argument,
      () => create({ preferredOutputLocation: 'gpu-buffer' }),
      'leaves outputs as "ml-tensor", not as "gpu-buffer"',
    );
    await fails(() => create({ preferredOutputLocation: 'moon' }), 'one of "cpu", "gpu-buffer", "ml-tensor"');
  },

  preallocated: async () => {
    const session = await create();
    const mine = await tensorOn(context, [1, 3], undefined, 'float32', { readable: true });
    const target = from(mine);
    for (const more of [0, 1, 2]) {
      const feeds = { x: new Tensor('float32', [1 + more, 2, 3], [1, 3]), scale };
      const run = async () => equal([(await session.run(feeds, { y: target })).y === target], [true]);
      const { readTensor } = await calls(context, run);
      equal([readTensor], [0]);
      equal(await read(mine), [11 + more, 22, 33]);
    }
    // An output is the next input.
    equal((await session.run({ x: target, scale })).y.data, [23, 42, 63]);
    const wrong = from(await tensorOn(context, [3]));
    await failsWith(
      ErrorCode.invalid_argument,
      () => session.run({ x: x(), scale }, { y: wrong }),
      'output "y" is float32\\[1,3\\]; the value bound to it is float32\\[3\\]',
    );
    await session.release();
  },

  'preallocated by a session': async () => {
    const session = await create(LEFT);
    const { y } = await session.run({ x: x(), scale });
    const known = y.mlTensor;
    await session.run({ x: new Tensor('float32', [4, 5, 6], [1, 3]), scale }, { y });
    equal([y.mlTensor === known], [true]);
    equal(await read(known), [14, 25, 36]);
    y.dispose();
    await fails(() => context.readTensor(known), 'destroyed');
    await fails(() => y.mlTensor, 'disposed of');
    await session.release();
  },

  'written where it is read': async () => {
    const session = await create();
    const mine = await tensorOn(context, [1, 3], [1, 2, 3]);
    for (const times of [1, 2, 3]) {
      await session.run({ x: from(mine), scale }, { y: from(mine) });
      equal(await read(mine), [1 + 10 * times, 2 + 20 * times, 3 + 30 * times]);
    }
    // It is copied there, by writing.
    const locked = await tensorOn(context, [1, 3], undefined, 'float32', {});
    await failsWith(
      ErrorCode.invalid_argument,
      () => session.run({ x: from(locked), scale }, { y: from(locked) }),
      'the tensor for output "y".*write access.*`writable`',
    );
    await session.release();
  },

  'one graph for all tensors of one shape': async () => {
    const { build } = MLGraphBuilder.prototype;
    let builds = 0;
    MLGraphBuilder.prototype.build = function (...given) {
      builds++;
      return build.apply(this, given);
    };
    try {
      const session = await create(LEFT);
      let { y } = await session.run({ x: x(), scale });
      for (let times = 2; times <= 20; times++) {
        const next = await session.run({ x: y, scale });
        y.dispose();
        y = next.y;
      }
      equal(await y.getData(true), [201, 402, 603]);
      await session.run({ x: from(await tensorOn(context, [1, 3], [1, 2, 3])), scale });
      equal([builds], [1]);
      await session.run({ x: new Tensor('float32', new Float32Array(6), [2, 3]), scale });
      equal([builds], [2]);
      await session.release();
    } finally {
      MLGraphBuilder.prototype.build = build;
    }
  },

  'from run to run and from session to session': async () => {
    const [first, second] = [await create(LEFT), await create(LEFT)];
    let { y } = await first.run({ x: x(), scale });
    for (const session of [second, first, second]) {
      const next = await session.run({ x: y, scale });
      y.dispose();
      y = next.y;
    }
    equal(await y.getData(true), [41, 82, 123]);
    // A session's output is an MLTensor like the page's.
    const { y: left } = await first.run({ x: x(), scale });
    equal(await (await second.run({ x: from(left.mlTensor), scale })).y.getData(true), [21, 42, 63]);
    await first.release();
    equal(await (await second.run({ x: left, scale })).y.getData(true), [21, 42, 63]);
    left.dispose();
    await second.release();
  },

  'each type as the CPU has it': async () => {
    const session = await create(LEFT, 'forms.pyort');
    const i = await tensorOn(context, [3], [1n, -2n, 2n ** 40n], 'int64');
    const b = await tensorOn(context, [3], [1, 0, 1], 'uint8');
    const h = await tensorOn(context, [3], [-1.5, 0, 2.5], 'float16');
    const feeds = { i: from(i), b: from(b, [3], 'bool'), h: from(h) };
    const { i_neg, not_b, h_relu, d, d_twice } = await session.run({ ...feeds, m: scaleMatrix() });
    equal(await read(i_neg.mlTensor), [-1n, 2n, -(2n ** 40n)]);
    equal([i_neg.type, not_b.type, not_b.mlTensor.dataType], ['int64', 'bool', 'uint8']);
    equal(await not_b.getData(), [0, 1, 0]);
    equal(await read(h_relu.mlTensor), [0, 0, 2.5]);
    // The CPU computed it.
    equal([d.location, ...(await read(d.mlTensor))], ['ml-tensor', 6]);
    equal(await d_twice.getData(), [12]);
    const wrong = Tensor.fromMLTensor(await tensorOn(context, [3], [1, 2, 3], 'int32'), {
      dataType: 'int64',
      dims: [3],
    });
    await failsWith(
      ErrorCode.invalid_argument,
      () => session.run({ ...feeds, i: wrong, m: scaleMatrix() }),
      'input "i": int64\\[3\\] needs an MLTensor of int64\\[3\\], and this one is int32\\[3\\]',
    );
    const flat = from(i, [3, 1]);
    await fails(() => session.run({ ...feeds, i: flat, m: scaleMatrix() }), 'wants shape|needs an MLTensor of');
    await session.release();
  },

  'read and written by the CPU': async () => {
    const session = await create({}, 'forms.pyort');
    const m = await tensorOn(context, [2, 2], [2, 0, 0, 3], 'float32', { readable: true });
    const place = await tensorOn(context, [], undefined, 'float32', { readable: true, writable: true });
    const others = {
      i: new Tensor('int64', [1n, 2n, 3n]),
      b: new Tensor('bool', [true, false, true]),
      h: new Tensor('float16', Float16Array.of(1, 2, 3)),
    };
    await session.run({ ...others, m: from(m) }, { d: from(place) });
    equal(await read(place), [6]);
    const locked = await tensorOn(context, [2, 2], [2, 0, 0, 3], 'float32', {});
    await failsWith(
      ErrorCode.invalid_argument,
      () => session.run({ ...others, m: from(locked) }),
      'input "m": float32\\[2,2\\].*read access.*`readable`',
    );
    const unwritable = await tensorOn(context, []);
    const { d } = await session.run({ ...others, m: from(m) }, { d: from(unwritable), d_twice: null });
    equal(await read(d.mlTensor), [6]);
    await session.release();
  },

  'of another context, destroyed, and of WebGPU': async () => {
    const session = await create();
    const other = await newContext();
    const strange = await tensorOn(other, [1, 3], [1, 2, 3]);
    for (const _ of [1, 2])
      await failsWith(
        ErrorCode.invalid_argument,
        () => session.run({ x: from(strange), scale }),
        'input "x": float32\\[1,3\\].*context.*own MLContext',
      );
    await failsWith(
      ErrorCode.invalid_argument,
      () => session.run({ x: x(), scale }, { y: from(strange) }),
      'the tensor for output "y": .*own MLContext',
    );
    const elsewhere = await create(LEFT, 'add.pyort', other);
    const { y } = await elsewhere.run({ x: x(), scale });
    await failsWith(ErrorCode.invalid_argument, () => session.run({ x: y, scale }), 'take it to the CPU first');
    y.dispose();
    await elsewhere.release();
    // It remains the page's.
    equal(await read(strange, other), [1, 2, 3]);
    const gone = await tensorOn(context, [1, 3], [1, 2, 3]);
    gone.destroy();
    await failsWith(ErrorCode.invalid_argument, () => session.run({ x: from(gone), scale }), 'alive');
    const left = await create(LEFT);
    const { y: ended } = await left.run({ x: x(), scale });
    ended.mlTensor.destroy();
    await failsWith(ErrorCode.invalid_argument, () => left.run({ x: ended, scale }), 'a session left.*alive');
    ended.dispose();
    await left.release();
    const buffer = Tensor.fromGpuBuffer({}, { dims: [1, 3] });
    await failsWith(ErrorCode.invalid_argument, () => session.run({ x: buffer, scale }), 'none but a ml-tensor');
    equal((await session.run({ x: x(), scale })).y.data, [11, 22, 33]);
    await session.release();
  },

  'in the thread of the page, whatever env.wasm.proxy says': async () => {
    env.wasm.proxy = true;
    try {
      const session = await create(LEFT);
      const { y } = await session.run({ x: x(), scale });
      equal(await read(y.mlTensor), [11, 22, 33]);
      y.dispose();
      await session.release();
      // Without the page's own context it is in a worker, whose tensors have no MLTensor here.
      const away = await InferenceSession.create('add.pyort', { executionProviders: ['webnn'], ...LEFT });
      const { y: there } = await away.run({ x: x(), scale });
      equal([there.location], ['ml-tensor']);
      await fails(() => there.mlTensor, 'runs in a worker, whose MLTensors');
      equal(await there.getData(true), [11, 22, 33]);
      await away.release();
    } finally {
      env.wasm.proxy = undefined;
    }
  },

  "the page's context, lost": async () => {
    const own = await newContext();
    const session = await create(LEFT, 'add.pyort', own);
    const { y } = await session.run({ x: x(), scale });
    own.destroy();
    await failsWith(ErrorCode.device_lost, () => session.run({ x: x(), scale }), 'lost.*could not be made again');
    await failsWith(ErrorCode.device_lost, () => y.getData(), 'lost');
    await failsWith(ErrorCode.device_lost, () => create(LEFT, 'add.pyort', own), 'which the page registered, is lost');
    y.dispose();
    await session.release();
    const next = await create(LEFT, 'add.pyort', await newContext());
    equal(await (await next.run({ x: x(), scale })).y.getData(true), [11, 22, 33]);
    await next.release();
  },

  'lost while a run is under way': async () => {
    const own = await newContext();
    const session = await create({}, 'add.pyort', own);
    await session.run({ x: x(), scale });
    const run = session.run({ x: x(), scale });
    const { dispatch } = own;
    own.dispatch = (...given) => {
      own.destroy();
      dispatch.apply(own, given);
    };
    const another = session.run({ x: x(), scale });
    await failsWith(ErrorCode.device_lost, () => another, 'lost');
    await run.catch(() => undefined);
    await session.release();
  },

  "a session's own context, lost": async () => {
    env.wasm.proxy = false;
    const made = [];
    navigator.ml.createContext = async (...given) => {
      made.push(await ML.prototype.createContext.apply(navigator.ml, given));
      return made.at(-1);
    };
    try {
      const options = { executionProviders: ['webnn'], ...LEFT };
      const session = await InferenceSession.create('add.pyort', options);
      const { y } = await session.run({ x: x(), scale });
      made[0].destroy();
      const { y: back } = await session.run({ x: x(), scale });
      equal(await back.getData(true), [11, 22, 33]);
      equal([made.length], [2]);
      await failsWith(ErrorCode.device_lost, () => y.getData(), 'lost');
      y.dispose();
      const { y: next } = await session.run({ x: x(), scale });
      made[1].destroy();
      await failsWith(ErrorCode.device_lost, () => session.run({ x: next, scale }), 'The session is back.*are gone');
      const fresh = await InferenceSession.create('add.pyort', options);
      equal(await (await fresh.run({ x: x(), scale })).y.getData(true), [11, 22, 33]);
      equal([made.length], [3]);
      await fresh.release();
      await session.release();
    } finally {
      delete navigator.ml.createContext;
      env.wasm.proxy = undefined;
    }
  },

  'what is no context': async () => {
    await failsWith(
      ErrorCode.invalid_argument,
      () => create({}, 'add.pyort', newContext()),
      'no MLContext: .*await navigator.ml.createContext',
    );
    // Options that the page's own context already has are ignored.
    const given = { ...webnn(context), deviceType: 'gpu', powerPreference: 'low-power', numThreads: 2 };
    const session = await InferenceSession.create('add.pyort', { executionProviders: [given] });
    equal((await session.run({ x: x(), scale })).y.data, [11, 22, 33]);
    await session.release();
    // The context remains the page's.
    await tensorOn(context, [1]);
  },
};

await tell({ outcomes: await outcomesOf(cases) });
