// Builds py_ort/assets/: index.html and worker.js (what Python opens), peer.js (the benchmark's other engine),
// bare_bench.js, page_bench.js, py_ort.mjs and session_worker.mjs (sessions for any page; py_ort.wasm.mjs and its
// worker: those without WebGPU; *.minimal*.mjs: those for an export to write a model's kernels into, of
// kernel_modules.json), report_*.js (what Python writes into the pages that it makes) and a kernels.NAME.json for each
// provider with devices. PY_ORT_PROVIDERS adds folders of such providers.
//   node build.mjs [--minify] [--out DIR]                 the assets; elsewhere, without those of the core
//   node build.mjs --page NAME --out DIR [--only STEM]…  a page of test/NAME/main.ts, with some kernels only
//   node build.mjs --node NAME --out DIR                  test/NAME/main.ts for Node: DIR/main.mjs
//   node build.mjs --tests                               the unit tests, into build/web-tests/
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';
import { common, evaluated, PROVIDERS, virtualModules } from './bundling.mjs';
import {
  buildGenerate,
  buildKernelModules,
  buildLateProviders,
  buildPageCompiler,
  buildSessions,
  FLAVORS,
  MINIMAL,
  pageScripts,
} from './npm/sessions.mjs';
import { notices } from './notices.mjs';

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

/** The kernels of a provider, as the file manifest.ts of its folder lists them. */
async function manifest(folder) {
  const { kernels, sources } = await evaluated(`export * from './manifest';`, folder);
  // To a kernel both are floats in which it does not compute.
  const withBfloat = (names) => (names.includes('float16') ? [...names, 'bfloat16'] : names);
  return kernels.map(({ domain = '', op, types, requires, features }, i) => ({
    domain,
    op_type: op,
    types: types.map(withBfloat),
    requires,
    features,
    source: sources?.[i] ?? '',
  }));
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
      plugins: [runtime, virtualModules()],
      entryPoints: [`src/model_page/${file}.ts`],
      outfile: path.join(assets, `${name}.js`),
    });
  }
}

/** The script that `py-ort serve` adds to other people's pages. */
async function buildOverlay(assets) {
  await esbuild.build({
    ...common,
    format: 'iife',
    minify: true,
    entryPoints: ['src/dev_server/overlay.ts'],
    outfile: path.join(assets, 'serve_overlay.js'),
  });
}

/** The scripts that Python writes into pages: small, and with the license of what is in them. */
async function buildReports(assets) {
  let license;
  try {
    license = await readFile(new URL('dagre.esm.js.LEGAL.txt', import.meta.resolve('@dagrejs/dagre')), 'utf8');
  } catch (e) {
    throw new Error(`@dagrejs/dagre is not installed: run \`npm ci\` in web/ (${e.message})`);
  }
  for (const [name, js] of Object.entries({ profile: '', bench: '', check: '', matrix: '', graph: license.trim() })) {
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

/**
 * The page that Python opens, also in distant browsers. It is small, and index.html contains its script, which saves a
 * round trip. Functions keep their names, for the stacks that Python receives.
 */
async function buildPythonPage(assets) {
  const small = { ...common, minify: true, keepNames: true, sourcemap: 'linked', plugins: [virtualModules()] };
  await esbuild.build({ ...small, entryPoints: ['src/page/worker.ts'], outdir: assets });
  const { outputFiles } = await esbuild.build({
    ...small,
    entryPoints: ['src/page/page.ts'],
    outdir: assets,
    write: false,
  });
  const [script, map] = ['.js', '.map'].map((end) => outputFiles.find((file) => file.path.endsWith(end)));
  const html = await readFile(path.join(web, 'src/page/index.html'), 'utf8');
  const linked = '<script type="module" src="page.js"></script>';
  if (!html.includes(linked)) throw new Error(`src/page/index.html has no ${linked}`);
  const whole = html.replace(linked, () => `<script type="module">\n${script.text}</script>`);
  await writeFile(path.join(assets, 'index.html'), whole);
  await writeFile(map.path, map.contents);
}

async function buildAssets() {
  const assets = args.out ? path.resolve(args.out) : path.join(root, 'py_ort/assets');
  await mkdir(assets, { recursive: true });
  await buildPythonPage(assets);
  await esbuild.build({
    ...common,
    minify: args.minify,
    sourcemap: 'linked',
    outdir: assets,
    entryPoints: {
      peer: 'src/peer/worker.ts',
      bare_bench: 'src/bare_bench/worker.ts',
      page_bench: 'src/page_bench/main.ts',
      microkernel_worker: 'src/page/microkernel_worker.ts',
    },
  });
  for (const { suffix, ...flavor } of [...FLAVORS, MINIMAL])
    await buildSessions({
      ...flavor,
      folder: assets,
      name: `py_ort${suffix}`,
      entry: 'src/module.ts',
      scripts: pageScripts(suffix),
      minify: true, // `py-ort export` copies them beside models, for visitors to download
      sourcemap: flavor.linked ? false : 'linked', // kernels that an export writes move what is behind them
    });
  for (const build of [buildGenerate, buildLateProviders, buildKernelModules, buildPageCompiler])
    await build({ folder: assets, minify: true, sourcemap: 'linked' });
  await buildModelPages(assets);
  await buildOverlay(assets);
  await buildReports(assets);
  await writeFile(path.join(assets, 'THIRD_PARTY_NOTICES'), await notices());
  const counts = [];
  for (const { name, folder } of PROVIDERS) {
    if (!existsSync(path.join(folder, 'manifest.ts'))) continue;
    const list = await manifest(folder);
    await writeFile(path.join(assets, `kernels.${name}.json`), `${JSON.stringify(list, null, 1)}\n`);
    counts.push(`${list.length} kernels of ${name}`);
  }
  console.log(`built ${path.relative(root, assets)}: index.html, worker.js, ${counts.join(', ')}`);
}

async function buildTestPage(name, folder, only) {
  await mkdir(folder, { recursive: true });
  const outfile = path.join(folder, 'main.js');
  await esbuild.build({ ...common, plugins: [virtualModules(only)], entryPoints: [`test/${name}/main.ts`], outfile });
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
    plugins: [virtualModules()],
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
    plugins: [virtualModules()],
    define: { PY_ORT_VERSION: '"test"' },
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
