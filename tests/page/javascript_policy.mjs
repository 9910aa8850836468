// One run; ?runtime=URL is the package, ?page keeps the session out of a worker, ?provider= replaces wasm, ?threads=
// are those of all sessions, ?later= those of a further one.
const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const said = { info: [], warn: [], error: [] };
for (const method of Object.keys(said)) console[method] = (...words) => said[method].push(words.join(' '));
const refused = [];
const streamed = [];
const { compileStreaming } = WebAssembly;
WebAssembly.compileStreaming = async (source) => {
  streamed.push(new URL((await source).url).pathname);
  return compileStreaming.call(WebAssembly, source);
};
document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
  refused.push(`${violatedDirective} ${blockedURI}`);
});

async function main() {
  const { env, InferenceSession, Tensor } = await import(new URL('py_ort.mjs', query.get('runtime') ?? location.href));
  env.logLevel = 'info';
  if (query.has('page')) env.wasm.proxy = false;
  if (query.has('threads')) env.wasm.numThreads = Number(query.get('threads'));
  const options = { executionProviders: [query.get('provider') ?? 'wasm'] };
  const session = await InferenceSession.create('parted.pyort', options);
  const ramp = Float32Array.from({ length: 4 * 8 * 8 }, (_, i) => (i % 17) / 17);
  const { y } = await session.run({ x: new Tensor('float32', ramp, [1, 4, 8, 8]) });
  if (query.has('later'))
    await InferenceSession.create('parted.pyort', { ...options, intraOpNumThreads: Number(query.get('later')) });
  return { y: [...y.data], streamed, isolated: globalThis.crossOriginIsolated };
}

main().then(
  (out) => tell({ ...out, said, refused }),
  (error) => tell({ error: `${error.stack ?? error}`, said, refused }),
);
