// Sessions for pages and for Node, as modules: the API, what it loads when it is wanted, and the script of its workers.
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import * as esbuild from 'esbuild';
import { common, PAGE_SCRIPTS, PROVIDERS, virtualModules } from '../bundling.mjs';
import { commentImports } from './import_comments.mjs';
import { smaller } from './smaller.mjs';

const web = path.dirname(import.meta.dirname);

export const CORE_GLUE = path.join(web, '../py_ort/assets/core.mjs');

/** Providers that only a build of their own has: few pages want them. */
const APART = ['webgl', 'webnn'];
const apart = ({ name }) => APART.includes(name);

/** The builds: for most pages, without devices, and one for each provider that is built apart. */
export const FLAVORS = [
  { suffix: '', only: undefined, providers: PROVIDERS.filter((one) => !apart(one)) },
  { suffix: '.wasm', only: [], providers: [] },
  ...PROVIDERS.filter(apart).map((one) => ({ suffix: `.${one.name}`, only: undefined, providers: [one] })),
];

export const pageScripts = (suffix) => ({ ...PAGE_SCRIPTS, worker: `session_worker${suffix}.mjs` });

/** The version of the whole project: `__version__` of the Python package. */
export async function projectVersion() {
  const text = await readFile(path.join(web, '../py_ort/__init__.py'), 'utf8');
  return /^__version__ = "(.+)"$/m.exec(text)[1];
}

/** The settings of esbuild that all builds of the API share. */
export async function settings({ only, scripts, providers, glue, loops, minify, sourcemap, platform }) {
  return {
    ...common,
    minify,
    sourcemap,
    platform,
    plugins: [virtualModules(only, { scripts, providers, glue, loops }), smaller],
    define: { PY_ORT_VERSION: JSON.stringify(await projectVersion()) },
  };
}

/**
 * Writes generate.mjs: the loops of decoders and providers' parts of them, which all builds share.
 *
 * It exports a function that is given `require` and returns what src/generate/generator.ts exports: all that these
 * modules import of others comes through src/generate/outside.ts, which is whoever's that loads the file.
 */
export async function buildGenerate({ folder, minify, sourcemap }) {
  const outside = {
    name: 'outside',
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ path: name, resolveDir, kind }) => {
        const file = path.resolve(resolveDir, name);
        if (file === path.join(web, 'src/generate/outside')) return { path: './outside', external: true };
        if (kind === 'entry-point' || path.basename(path.dirname(file)) === 'generate') return undefined;
        return { errors: [{ text: `${name}: imported in ${resolveDir}, and is to come through generate/outside` }] };
      });
    },
  };
  await esbuild.build({
    ...common,
    minify,
    sourcemap,
    format: 'cjs',
    plugins: [outside, virtualModules(), smaller],
    banner: { js: 'export default (require) => { const module = {};' },
    footer: { js: 'return module.exports; };' },
    entryPoints: { generate: './src/generate/generator.ts' },
    outExtension: { '.js': '.mjs' },
    outdir: folder,
  });
}

/**
 * Writes NAME.mjs, with what is loaded late in NAME-HASH.mjs, and the workers' script.
 *
 * The latter is one file: bundlers copy it as it is. Of pages it has the core's glue in it, for which the core would
 * wait.
 */
export async function buildSessions({
  folder,
  name,
  entry,
  worker = 'src/api/worker.ts',
  scripts = PAGE_SCRIPTS,
  ...options
}) {
  const late = new RegExp(`^${name.replaceAll('.', '\\.')}-\\w{8}\\.mjs`);
  for (const old of await readdir(folder)) if (late.test(old)) await rm(path.join(folder, old));
  const shared = { outExtension: { '.js': '.mjs' }, outdir: folder };
  const api = { ...(await settings({ scripts, ...options })), ...shared };
  const glue = options.platform === 'node' ? undefined : CORE_GLUE;
  const script = { ...(await settings({ scripts, glue, ...options })), ...shared };
  await Promise.all([
    esbuild.build({ ...api, splitting: true, chunkNames: `${name}-[hash]`, entryPoints: { [name]: entry } }),
    esbuild.build({ ...script, entryPoints: { [path.parse(scripts.worker).name]: worker } }),
  ]);
  for (const chunk of await readdir(folder))
    if (late.test(chunk) && chunk.endsWith('.mjs')) await commentImports(path.join(folder, chunk));
}
