// What all bundles of web/src have in common: options of esbuild, and modules that are made while it runs.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

const web = import.meta.dirname;

/**
 * The files of src/providers/webgpu/kernels that default-export an array of kernels, by family: each with its path
 * there as its source ("matmul/gemm", "convolution/conv"), whose last part is its stem.
 */
async function kernelFiles(only) {
  const folder = path.join(web, 'src/providers/webgpu/kernels');
  const files = [];
  for (const name of await readdir(folder, { recursive: true })) {
    const file = path.join(folder, name);
    if (!name.endsWith('.ts') || !/^export default /m.test(await readFile(file, 'utf8'))) continue;
    files.push({ file, source: name.replace(/(\/index)?\.ts$/, '').replaceAll(path.sep, '/') });
  }
  const stem = ({ source }) => path.posix.basename(source);
  const missing = only?.filter((wanted) => !files.some((file) => stem(file) === wanted)) ?? [];
  if (missing.length > 0) throw new Error(`no kernel file for ${missing}`);
  return files.filter((file) => !only || only.includes(stem(file))).sort((a, b) => (a.source < b.source ? -1 : 1));
}

/** The names of the workers' scripts in a page's assets. */
export const PAGE_SCRIPTS = { worker: 'session_worker.mjs', thread: 'microkernel_worker.js' };
export const ALL_PROVIDERS = ['webgpu', 'wasm'];

/**
 * The modules virtual:kernels, the list of kernels and the source of each, virtual:build, what differs between builds
 * of the API, and virtual:core, the core's glue. `only`: stems of files of kernels; all if it is left out. `glue`:
 * core.mjs, where a script has it in it.
 */
export function virtualModules(only, { scripts = PAGE_SCRIPTS, providers = ALL_PROVIDERS, glue } = {}) {
  return {
    name: 'virtual',
    setup(build) {
      build.onResolve({ filter: /^virtual:/ }, ({ path: name }) => ({ path: name, namespace: 'virtual' }));
      build.onLoad({ filter: /^virtual:build$/, namespace: 'virtual' }, () => ({
        contents: [
          `export const providers = ${JSON.stringify(providers)};`,
          ...Object.entries(scripts).map(
            ([role, name]) => `export const ${role} = { name: '${name}', url: new URL('./${name}', import.meta.url) };`,
          ),
        ].join('\n'),
      }));
      build.onLoad({ filter: /^virtual:core$/, namespace: 'virtual' }, () => ({
        contents: glue
          ? `export { default as createCore } from ${JSON.stringify(glue)};`
          : 'export const createCore = undefined;',
        resolveDir: web,
      }));
      build.onLoad({ filter: /^virtual:kernels$/, namespace: 'virtual' }, async () => {
        const files = await kernelFiles(only);
        const imports = files.map(({ file }, i) => `import k${i} from ${JSON.stringify(file)};`);
        const list = files.map((_, i) => `...k${i}`);
        const sources = files.map(({ source }, i) => `...k${i}.map(() => ${JSON.stringify(source)})`);
        return {
          contents: [
            ...imports,
            `export const kernels = [${list}];`,
            `export const sources = /* @__PURE__ */ (() => [${sources}])();`,
          ].join('\n'),
          resolveDir: web,
          loader: 'ts',
        };
      });
    },
  };
}

export const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning', absWorkingDir: web };
