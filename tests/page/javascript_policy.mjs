// One run; ?runtime=URL is where the package is, ?page keeps the session out of a worker, ?provider= is not wasm.
const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const said = { info: [], warn: [], error: [] };
for (const method of Object.keys(said)) console[method] = (...words) => said[method].push(words.join(' '));
const refused = [];
document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
  refused.push(`${violatedDirective} ${blockedURI}`);
});

async function main() {
  const { env, InferenceSession, Tensor } = await import(new URL('py_ort.mjs', query.get('runtime') ?? location.href));
  env.logLevel = 'info';
  if (query.has('page')) env.wasm.proxy = false;
  const session = await InferenceSession.create('parted.pyort', {
    executionProviders: [query.get('provider') ?? 'wasm'],
  });
  const ramp = Float32Array.from({ length: 4 * 8 * 8 }, (_, i) => (i % 17) / 17);
  const { y } = await session.run({ x: new Tensor('float32', ramp, [1, 4, 8, 8]) });
  return { y: [...y.data], isolated: globalThis.crossOriginIsolated };
}

main().then(
  (out) => tell({ ...out, said, refused }),
  (error) => tell({ error: `${error.stack ?? error}`, said, refused }),
);
