// Builds py_ort/assets/: index.html, page.js and worker.js (what Python opens), peer.js (the benchmark's other engine),
// bridge_bench.js, py_ort.mjs and session_worker.mjs (sessions for any page), report_*.js (what Python writes into the
// pages that it makes) and
// kernels.webgpu.json.
//   node build.mjs [--minify]                            the assets
//   node build.mjs --page NAME --out DIR [--only STEM]…  a page of test/NAME/main.ts, with some kernels only
//   node build.mjs --node NAME --out DIR                  test/NAME/main.ts for Node: DIR/main.mjs
//   node build.mjs --tests                               the unit tests, into build/web-tests/
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

const web = import.meta.dirname;
const root = path.dirname(web);
const { values: args } = parseArgs({
  options: {
    minify: { type: 'boolean' },
    tests: { type: 'boolean' },
    page: { type: 'string' },
    node: { type: 'string' },
    out: { type: 'string' },
    only: { type: 'string', multiple: true },
  },
});

// TypeScript of py_ort/schema/scalar_functions.py.
execFileSync(process.env.PYTHON || 'python3', [path.join(root, 'py_ort/schema/scalar_code.py')], { stdio: 'inherit' });

/**
 * The files of src/kernels that default-export an array of kernels, by family: each with its path there as its source
 * ("matmul/gemm", "convolution/conv"), whose last part is its stem.
 */
async function kernelFiles(only) {
  const folder = path.join(web, 'src/kernels');
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

/** The module virtual:kernels: the list of all kernels, and the source of each. */
function kernelList(only) {
  return {
    name: 'kernels',
    setup(build) {
      build.onResolve({ filter: /^virtual:kernels$/ }, () => ({ path: 'kernels', namespace: 'virtual' }));
      build.onLoad({ filter: /.*/, namespace: 'virtual' }, async () => {
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

const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning', absWorkingDir: web };

async function manifest() {
  const { outputFiles } = await esbuild.build({
    ...common,
    platform: 'neutral',
    write: false,
    plugins: [kernelList()],
    mainFields: ['module', 'main'],
    stdin: { contents: `export { kernels, sources } from 'virtual:kernels';`, resolveDir: web, loader: 'ts' },
  });
  const { kernels, sources } = await import(
    `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`
  );
  // To a kernel both are floats in which it does not compute.
  const withBfloat = (names) => (names.includes('float16') ? [...names, 'bfloat16'] : names);
  return kernels.map(({ domain = '', op, types, requires, features }, i) => ({
    domain,
    op_type: op,
    types: types.map(withBfloat),
    requires,
    features,
    source: sources[i],
  }));
}

/** py_ort.mjs and what it loads when it is wanted: the worker of its sessions, and what both share. */
async function buildPackage(assets) {
  for (const old of await readdir(assets)) if (/^shared-.*\.mjs/.test(old)) await rm(path.join(assets, old));
  const { version } = JSON.parse(await readFile(path.join(web, 'package.json'), 'utf8'));
  await esbuild.build({
    ...common,
    minify: args.minify,
    sourcemap: 'linked',
    plugins: [kernelList()],
    define: { PY_ORT_VERSION: JSON.stringify(version) },
    outdir: assets,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    chunkNames: 'shared-[hash]',
    entryPoints: { py_ort: 'src/index.ts', session_worker: 'src/api/worker.ts' },
  });
}

/** The scripts of pages that run exported models. They load py_ort.mjs, which pages of one's own do, too. */
async function buildModelPages(assets) {
  const runtime = {
    name: 'runtime',
    setup(build) {
      const path = './py_ort/py_ort.mjs';
      build.onResolve({ filter: /^\.\.\/index$/ }, () => ({ path, external: true, sideEffects: false }));
    },
  };
  for (const [name, file] of Object.entries({ model_page: 'main', check_page: 'check' })) {
    await esbuild.build({
      ...common,
      minify: args.minify,
      plugins: [runtime],
      entryPoints: [`src/model_page/${file}.ts`],
      outfile: path.join(assets, `${name}.js`),
    });
  }
}

/** The scripts that Python writes into pages: small, and with the license of what is in them. */
async function buildReports(assets) {
  let license;
  try {
    license = await readFile(new URL('dagre.esm.js.LEGAL.txt', import.meta.resolve('@dagrejs/dagre')), 'utf8');
  } catch (e) {
    throw new Error(`@dagrejs/dagre is not installed: run \`npm ci\` in web/ (${e.message})`);
  }
  for (const [name, js] of Object.entries({ profile: '', bench: '', check: '', graph: license.trim() })) {
    await esbuild.build({
      ...common,
      format: 'iife',
      minify: true,
      charset: 'utf8',
      legalComments: 'none',
      banner: { js },
      entryPoints: [`src/report/${name}.ts`],
      outfile: path.join(assets, `report_${name}.js`),
    });
  }
}

async function buildAssets() {
  const assets = path.join(root, 'py_ort/assets');
  await mkdir(assets, { recursive: true });
  await esbuild.build({
    ...common,
    minify: args.minify,
    sourcemap: 'linked',
    plugins: [kernelList()],
    outdir: assets,
    entryPoints: {
      page: 'src/page/page.ts',
      worker: 'src/page/worker.ts',
      peer: 'src/peer/worker.ts',
      bridge_bench: 'src/bridge_bench/worker.ts',
      microkernel_worker: 'src/page/microkernel_worker.ts',
    },
  });
  await buildPackage(assets);
  await buildModelPages(assets);
  await buildReports(assets);
  await copyFile(path.join(web, 'src/page/index.html'), path.join(assets, 'index.html'));
  const list = await manifest();
  await writeFile(path.join(assets, 'kernels.webgpu.json'), `${JSON.stringify(list, null, 1)}\n`);
  console.log(`built ${path.relative(root, assets)}: page.js, worker.js, ${list.length} WebGPU kernels`);
}

async function buildTestPage(name, folder, only) {
  await mkdir(folder, { recursive: true });
  const outfile = path.join(folder, 'main.js');
  await esbuild.build({ ...common, plugins: [kernelList(only)], entryPoints: [`test/${name}/main.ts`], outfile });
  await writeFile(
    path.join(folder, 'index.html'),
    `<!doctype html><title>${name}</title><script type="module" src="main.js"></script>\n`,
  );
}

async function buildForNode(name, folder) {
  const outfile = path.join(folder, 'main.mjs');
  await esbuild.build({
    ...common,
    platform: 'node',
    plugins: [kernelList()],
    entryPoints: [`test/${name}/main.ts`],
    outfile,
  });
}

async function buildTests() {
  const out = path.join(root, 'build/web-tests');
  await rm(out, { recursive: true, force: true });
  const folder = path.join(web, 'test/unit');
  const entryPoints = (await readdir(folder))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => path.join(folder, name));
  await esbuild.build({
    ...common,
    platform: 'node',
    plugins: [kernelList()],
    entryPoints,
    outdir: out,
    outExtension: { '.js': '.mjs' },
  });
  console.log(`built ${entryPoints.length} test files; run them with: node --test ${pathToFileURL(out).pathname}`);
}

if (args.tests) await buildTests();
else if (args.node) await buildForNode(args.node, path.resolve(args.out));
else if (args.page) await buildTestPage(args.page, path.resolve(args.out), args.only);
else await buildAssets();
