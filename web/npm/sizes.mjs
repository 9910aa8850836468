// How much pages download, packed by gzip.
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

/** A session in its worker, which has the core's glue in its script. */
const LOADED = {
  'with WebGPU': ['py_ort.mjs', 'session_worker.mjs'],
  'wasm only': ['py_ort.wasm.mjs', 'session_worker.wasm.mjs'],
};
const CORE = ['core.wasm'];
/** Sessions whose nodes on the CPU have loops that take time load one of these: the larger is of relaxed SIMD. */
const LOOPS = ['relaxed_simd.wasm'];
/** Sessions whose nodes on the CPU are of few models load it. */
const RARE = ['rare_kernels.wasm'];
const THREADS = ['microkernel_worker.js'];
/** The first `generate` of a page loads it. */
const GENERATE = ['generate.mjs'];

/** Chunks that a module imports at once. */
async function imported(dist, name) {
  const text = await readFile(path.join(dist, name), 'utf8');
  return [...text.matchAll(/\b(?:from|import)\s*"\.\/([^"]+)"/g)].map(([, file]) => file);
}

async function packed(dist, names) {
  const files = await Promise.all(names.map((name) => readFile(path.join(dist, name))));
  return files.reduce((sum, bytes) => sum + gzipSync(bytes, { level: 9 }).length, 0);
}

/** The same by Brotli, of the files beside them. */
async function packedByBrotli(dist, names) {
  const sizes = await Promise.all(names.map(async (name) => (await stat(path.join(dist, `${name}.br`))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Bytes: scripts, core, and what is loaded by use: loops on the CPU, their threads, rare kernels, `generate`. */
export async function measured(dist) {
  const found = {};
  for (const [what, names] of Object.entries(LOADED)) {
    const chunks = (await Promise.all(names.map((name) => imported(dist, name)))).flat();
    found[what] = {
      scripts: await packed(dist, [...names, ...new Set(chunks)]),
      core: await packed(dist, CORE),
      brotli: await packedByBrotli(dist, [...names, ...new Set(chunks), ...CORE]),
      loops: await packed(dist, LOOPS),
      threads: await packed(dist, THREADS),
      rare: await packed(dist, RARE),
      generate: await packed(dist, GENERATE),
    };
  }
  return found;
}

export async function sizes(dist) {
  const rows = Object.entries(await measured(dist)).map(
    ([what, { scripts, core, brotli, loops, threads, rare, generate }]) => {
      const kilobytes = (bytes) => `${Math.round(bytes / 1000)} kB`.padStart(8);
      const parts = `scripts ${kilobytes(scripts)}, core ${kilobytes(core)}, by Brotli all ${kilobytes(brotli)}`;
      const more =
        `loops on the CPU add ${kilobytes(loops)}, their threads ${kilobytes(threads)}, ` +
        `rare kernels ${kilobytes(rare)}, generate ${kilobytes(generate)}`;
      return `${what.padEnd(12)} ${kilobytes(scripts + core)}: ${parts}; ${more}`;
    },
  );
  return ['what a page downloads, gzip:', ...rows].join('\n');
}
