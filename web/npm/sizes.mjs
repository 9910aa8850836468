// How much pages download, packed by gzip.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

/** A session in its worker; what a page without threads and relaxed SIMD loads, and what it adds for them. */
const LOADED = {
  'with WebGPU': { names: ['py_ort.mjs', 'session_worker.mjs'] },
  'wasm only': { names: ['py_ort.wasm.mjs', 'session_worker.wasm.mjs'] },
};
const CORE = ['core.mjs', 'core.wasm'];
const THREADS = ['relaxed_simd.wasm', 'simd128.wasm', 'microkernel_worker.js'];

/** Chunks that a module imports at once. */
async function imported(dist, name) {
  const text = await readFile(path.join(dist, name), 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*"\.\/([^"]+)"/g)].map(([, file]) => file);
}

async function packed(dist, names) {
  const files = await Promise.all(names.map((name) => readFile(path.join(dist, name))));
  return files.reduce((sum, bytes) => sum + gzipSync(bytes, { level: 9 }).length, 0);
}

/** Bytes: the scripts, the core, and what threads and relaxed SIMD add. */
export async function measured(dist) {
  const found = {};
  for (const [what, { names }] of Object.entries(LOADED)) {
    const chunks = (await Promise.all(names.map((name) => imported(dist, name)))).flat();
    found[what] = {
      scripts: await packed(dist, [...names, ...new Set(chunks)]),
      core: await packed(dist, CORE),
      threads: await packed(dist, THREADS),
    };
  }
  return found;
}

export async function sizes(dist) {
  const rows = Object.entries(await measured(dist)).map(([what, { scripts, core, threads }]) => {
    const kilobytes = (bytes) => `${Math.round(bytes / 1000)} kB`.padStart(8);
    const [all, more] = [kilobytes(scripts + core), kilobytes(threads)];
    return `${what.padEnd(12)} ${all}: scripts ${kilobytes(scripts)}, core ${kilobytes(core)}; threads add ${more}`;
  });
  return ['what a page downloads, gzip:', ...rows].join('\n');
}
