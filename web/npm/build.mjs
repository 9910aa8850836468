// Writes dist/NAME-VERSION.tgz, the npm package; README.md beside this file says what is in it.
//   node npm/build.mjs [--out DIR] [--tarballs DIR]    where the folder is made (build/npm), and packed (dist)
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import * as esbuild from 'esbuild';
import { common } from '../bundling.mjs';
import { notices } from '../notices.mjs';
import { declarations } from './declarations.mjs';
import { publish } from './published.mjs';
import {
  buildGenerate,
  buildLateProviders,
  buildPageCompiler,
  buildSessions,
  CORE_GLUE,
  FLAVORS,
  pageScripts,
  projectVersion,
  settings,
} from './sessions.mjs';
import { sizes } from './sizes.mjs';

const here = import.meta.dirname;
const web = path.dirname(here);
const root = path.dirname(web);
const { values: args } = parseArgs({
  options: {
    out: { type: 'string', default: path.join(root, 'build/npm') },
    tarballs: { type: 'string', default: path.join(root, 'dist') },
  },
});
const dist = path.join(args.out, 'dist');

async function buildPages({ suffix, ...flavor }) {
  const options = { folder: dist, minify: true, sourcemap: 'linked', ...flavor, scripts: pageScripts(suffix) };
  await buildSessions({ ...options, name: `py_ort${suffix}`, entry: 'src/module.ts' });
  const inside = { late: [], sourcemap: false, glue: CORE_GLUE, loops: true };
  const whole = { ...(await settings({ ...options, ...inside })), outdir: dist };
  await esbuild.build({
    ...whole,
    entryPoints: { [`py_ort${suffix}.bundle`]: 'src/module.ts' },
    outExtension: { '.js': '.mjs' },
  });
  await esbuild.build({
    ...whole,
    format: 'iife',
    globalName: 'ort',
    inject: [path.join(here, 'script_url.ts')],
    define: { ...whole.define, 'import.meta.url': 'scriptUrl' },
    entryPoints: { [`py_ort${suffix}.min`]: 'src/index.ts' },
  });
}

async function buildForNode({ suffix, ...flavor }) {
  const scripts = {
    worker: `session_worker${suffix}.node.mjs`,
    plain: 'session_worker.wasm.node.mjs',
    thread: 'microkernel_worker.node.mjs',
  };
  await buildSessions({
    ...{ folder: dist, scripts, platform: 'node', ...flavor, late: [] },
    name: `py_ort${suffix}.node`,
    entry: 'src/node/index.ts',
    worker: 'src/node/session_worker.ts',
  });
}

/** Bundlers make data: URLs of files below 4 KiB, and few policies allow workers of such. */
const LARGE_ENOUGH = `/* Not to be inlined. ${' '.repeat(4096)}*/`;

async function buildThreads() {
  await esbuild.build({
    ...common,
    minify: true,
    footer: { js: LARGE_ENOUGH },
    outdir: dist,
    entryPoints: ['src/page/microkernel_worker.ts'],
  });
  await esbuild.build({
    ...common,
    outdir: dist,
    platform: 'node',
    entryPoints: { 'microkernel_worker.node': 'src/node/microkernel_worker.ts' },
    outExtension: { '.js': '.mjs' },
  });
}

/** Plugins of bundlers, and the command; they run where pages are built. */
async function buildForBundlers() {
  const names = ['vite', 'webpack', 'webpack_loader', 'cli'];
  await esbuild.build({
    ...(await settings({ platform: 'node' })),
    splitting: true,
    chunkNames: 'shared-[hash]',
    outExtension: { '.js': '.mjs' },
    outdir: path.join(args.out, 'bundlers'),
    entryPoints: Object.fromEntries(names.map((name) => [name, `src/bundlers/${name}.ts`])),
  });
  for (const name of ['vite', 'webpack', 'client'])
    await copyFile(path.join(here, `types/${name}.d.ts`), path.join(args.out, `bundlers/${name}.d.ts`));
}

async function copyCore() {
  const assets = path.join(root, 'py_ort/assets');
  for (const name of ['core.wasm', 'rare_kernels.wasm', 'relaxed_simd.wasm', 'simd128.wasm'])
    await copyFile(path.join(assets, name), path.join(dist, name));
  const glue = await esbuild.transform(await readFile(CORE_GLUE, 'utf8'), { minify: true });
  await writeFile(path.join(dist, 'core.mjs'), glue.code);
}

async function buildPackage() {
  await rm(args.out, { recursive: true, force: true });
  await mkdir(dist, { recursive: true });
  for (const flavor of FLAVORS) {
    await buildPages(flavor);
    await buildForNode(flavor);
  }
  await buildThreads();
  for (const build of [buildGenerate, buildLateProviders, buildPageCompiler])
    await build({ folder: dist, minify: true, sourcemap: 'linked' });
  await copyCore();
  await buildForBundlers();
  await publish(dist);
  await writeFile(path.join(dist, 'py_ort.d.ts'), await declarations('src/index.ts'));
  const described = JSON.parse(await readFile(path.join(here, 'package.json'), 'utf8'));
  const filled = { ...described, version: await projectVersion() };
  await writeFile(path.join(args.out, 'package.json'), `${JSON.stringify(filled, null, 2)}\n`);
  await copyFile(path.join(here, 'README.md'), path.join(args.out, 'README.md'));
  await copyFile(path.join(root, 'LICENSE'), path.join(args.out, 'LICENSE'));
  await writeFile(path.join(args.out, 'THIRD_PARTY_NOTICES'), await notices());
}

await buildPackage();
await mkdir(args.tarballs, { recursive: true });
const pack = ['pack', '--silent', '--pack-destination', args.tarballs];
const name = execFileSync('npm', pack, { cwd: args.out, encoding: 'utf8' }).trim();
console.log(`built ${path.relative(root, path.join(args.tarballs, name))}\n\n${await sizes(dist)}`);
