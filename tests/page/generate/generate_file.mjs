// Generations of test_generate_file.py. ?runtime=URL is the runtime, ?generate=URL its file of generate, ?paths all but
// the module; ?page keeps the session out of a worker, ?release releases it too early.
const query = new URL(location).searchParams;
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const refused = [];
document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
  refused.push(`${violatedDirective} ${blockedURI}`);
});

async function main() {
  const { env, InferenceSession, Tensor } = await import(new URL('py_ort.mjs', query.get('runtime') ?? location.href));
  if (query.has('page')) env.wasm.proxy = false;
  if (query.has('paths')) env.wasm.wasmPaths = query.get('paths');
  if (query.has('generate')) env.wasm.wasmPaths = { generate: query.get('generate') };
  const session = await InferenceSession.create('decoder.pyort', { executionProviders: ['wasm'] });
  const feeds = {};
  for (const { name, type, shape } of session.inputMetadata) {
    const dims = shape.map((size, i) => (typeof size === 'number' ? size : name.startsWith('past') && i === 2 ? 0 : 1));
    const size = dims.reduce((a, b) => a * b, 1);
    feeds[name] = new Tensor(type, type === 'int64' ? new BigInt64Array(size).fill(1n) : new Float32Array(size), dims);
  }
  const run = async () => (await session.run(feeds)).logits.dims;
  const dims = await run();
  await fetch('/before');
  const generate = () =>
    session.generate([3, 1, 4], { maxNewTokens: 4 }).result.catch(({ name, message }) => ({ name, message }));
  if (query.has('release')) {
    const waiting = generate();
    await session.release();
    await fetch('/released');
    return { released: await waiting };
  }
  const rows = await Promise.all([generate(), generate()]);
  await fetch('/between');
  return { dims, rows, again: await run(), last: await generate(), refused };
}

main().then(tell, (error) => tell({ error: `${error.stack ?? error}`, refused }));
