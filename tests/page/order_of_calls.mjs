// Orders in which pages set and ask for devices, adapters and providers, of which nothing is known before a session.
// Each case has a page of its own, and tells what came of it: ?module and ?model name the engine, ?case the case.

const query = new URL(location).searchParams;
const { env, InferenceSession, Tensor } = await import(new URL(query.get('module'), location.href));
if (query.has('here')) env.wasm.proxy = false;
env.wasm.numThreads = 1;
env.logLevel = 'error';

const webgpu = (more) => ({ executionProviders: [{ name: 'webgpu', ...more }] });
const create = (options) => InferenceSession.create(query.get('model'), options);
const scale = new Tensor('float32', [10, 20, 30], [3]);
const x = () => new Tensor('float32', [1, 2, 3], [1, 3]);
const run = async (session, feed = x()) => [...(await session.run({ x: feed, scale })).y.data];

/** A feed in a buffer of a device. */
function feedOn(device) {
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  const buffer = device.createBuffer({ size: 16, usage: STORAGE | COPY_SRC | COPY_DST });
  device.queue.writeBuffer(buffer, 0, Float32Array.of(4, 5, 6));
  return Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims: [1, 3] });
}
const adapterOf = async () => navigator.gpu.requestAdapter();
const deviceOf = async () => (await adapterOf()).requestDevice();
/** With a list of providers: what a run gives, or that there is no session. */
const providers = (executionProviders) => async () => create({ executionProviders }).then(run, () => 'refused');

const cases = {
  'the device after a session': async () => {
    const session = await create(webgpu());
    const device = await env.webgpu.device;
    return [device instanceof GPUDevice, device === (await env.webgpu.device), await run(session)];
  },
  'a feed on the device of a session': async () => {
    const session = await create(webgpu());
    return run(session, feedOn(await env.webgpu.device));
  },
  'a feed on the device of a session that was released': async () => {
    await (await create(webgpu())).release();
    const device = await env.webgpu.device;
    const feed = feedOn(device);
    const session = await create(webgpu());
    return [await run(session, feed), device === (await env.webgpu.device)];
  },
  'one device of two sessions': async () => {
    const first = await create({ ...webgpu(), preferredOutputLocation: 'gpu-buffer' });
    const device = await env.webgpu.device;
    const second = await create(webgpu());
    const { y } = await first.run({ x: x(), scale });
    return [await run(second, y), device === (await env.webgpu.device)];
  },
  'a device that is set': async () => {
    const device = await deviceOf();
    env.webgpu.device = device;
    const session = await create(webgpu());
    return [device === (await env.webgpu.device), await run(session), await run(session, feedOn(device))];
  },
  'a device that is set, and a feed before the session': async () => {
    env.webgpu.device = await deviceOf();
    const feed = feedOn(await env.webgpu.device);
    return run(await create(webgpu()), feed);
  },
  'a device as an option': async () => {
    const device = await deviceOf();
    const session = await create(webgpu({ device }));
    return [device === (await env.webgpu.device), await run(session), await run(session, feedOn(device))];
  },
  'a device as an option, then a session without': async () => {
    const device = await deviceOf();
    const first = await create(webgpu({ device }));
    const second = await create(webgpu());
    return [await run(first), await run(second), await run(second, feedOn(device)), await run(first, feedOn(device))];
  },
  'a device as an option, then a session without, and the device of both': async () => {
    const first = await create(webgpu({ device: await deviceOf() }));
    const second = await create(webgpu());
    const feed = feedOn(await env.webgpu.device);
    const into = feedOn(await env.webgpu.device);
    await second.run({ x: x(), scale }, { y: into });
    return [await run(first), await run(second, feed), await run(second, into)];
  },
  'an adapter that is set': async () => {
    const adapter = await adapterOf();
    env.webgpu.adapter = adapter;
    const session = await create(webgpu());
    return [adapter === env.webgpu.adapter, await run(session), await run(session, feedOn(await env.webgpu.device))];
  },
  'an adapter that is set, with two sessions after each other': async () => {
    env.webgpu.adapter = await adapterOf();
    const first = await create(webgpu());
    const before = await run(first);
    await first.release();
    return [before, await run(await create(webgpu()))];
  },
  'a preference of power': async () => {
    env.webgpu.powerPreference = 'low-power';
    return run(await create(webgpu()));
  },
  'wasm first, then webgpu': async () => {
    const first = await create({ executionProviders: ['wasm'] });
    const second = await create(webgpu());
    return [await run(first), await run(second), (await env.webgpu.device) instanceof GPUDevice];
  },
  'no options': async () => run(await create()),
  'providers: none named': async () => run(await create({ executionProviders: undefined })),
  'providers: an empty list': providers([]),
  'providers: wasm': providers(['wasm']),
  'providers: cpu': providers(['cpu']),
  'providers: webgpu, wasm': providers(['webgpu', 'wasm']),
  'providers: wasm, webgpu': providers(['wasm', 'webgpu']),
  'providers: webgpu twice': providers(['webgpu', 'webgpu']),
  'providers: by an object': providers([{ name: 'wasm' }]),
  'providers: unknown': providers(['nope']),
  'providers: one of another place': providers(['coreml']),
  'providers: one of another place, then wasm': providers(['coreml', 'wasm']),
};

const name = query.get('case');
const answer = await cases[name]().catch((error) => `error: ${error.message}`);
parent.postMessage({ name, answer }, location.origin);
