// Runs the cases of test_node.py: node node_cases.mjs PROVIDER FOLDER. Each is NAME.pyort with NAME.json, its feeds;
// the results are written to FOLDER/PROVIDER.json.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import ort, { Tensor } from 'py-ort-web';

const [provider, folder] = process.argv.slice(2);
const bytesOf = ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength);

function tensor({ type, dims, bytes }) {
  const { buffer, byteOffset, byteLength } = Buffer.from(bytes, 'base64');
  const own = buffer.slice(byteOffset, byteOffset + byteLength);
  // Node 20 has no Float16Array: its elements are bits there.
  const elements = type === 'float16' ? new Uint16Array(own) : new new Tensor(type, []).data.constructor(own);
  return new Tensor(type, elements, dims);
}

/** Models are passed in all possible ways. */
const sources = [
  (file) => file,
  (file) => path.relative('.', file),
  (file) => pathToFileURL(file),
  (file) => pathToFileURL(file).href,
  (file) => readFile(file),
  async (file) => new Blob([await readFile(file)]),
];

async function run(name, source) {
  const session = await ort.InferenceSession.create(await source(path.join(folder, `${name}.pyort`)), {
    executionProviders: [provider],
  });
  const feeds = JSON.parse(await readFile(path.join(folder, `${name}.json`), 'utf8'));
  const results = await session.run(
    Object.fromEntries(Object.entries(feeds).map(([key, value]) => [key, tensor(value)])),
  );
  const outputs = session.outputNames.map((output) => {
    const { type, dims, data } = results[output];
    return { type, dims, bytes: bytesOf(data).toString('base64') };
  });
  const { dispatches = 0 } = session.lastRun.counters ?? {};
  const { executionProviders } = session;
  await session.release();
  return { outputs, dispatches, providers: executionProviders };
}

const answers = {};
const names = (await readdir(folder)).filter((file) => file.endsWith('.pyort')).map((file) => path.parse(file).name);
for (const [i, name] of names.sort().entries()) {
  answers[name] = await run(name, sources[i % sources.length]).catch((error) => ({ error: error.message }));
}
const device = provider === 'webgpu' ? (await ort.env.webgpu.device).adapterInfo : undefined;
await writeFile(path.join(folder, `${provider}.json`), JSON.stringify({ answers, device: Boolean(device) }));
