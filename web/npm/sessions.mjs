// Sessions for pages and for Node, as modules: the API, what it loads when it is wanted, and the script of its workers.
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as esbuild from 'esbuild';
import {
  common,
  evaluated,
  importsOf,
  isInside,
  KERNELS,
  kernelFiles,
  lateScript,
  nameOfModule,
  PAGE_SCRIPTS,
  PROVIDERS,
  virtualModules,
} from '../bundling.mjs';
import { commentImports } from './import_comments.mjs';
import { smaller } from './smaller.mjs';

const web = path.dirname(import.meta.dirname);

export const CORE_GLUE = path.join(web, '../py_ort/assets/core.mjs');

/** Providers that few pages want: each has a build of its own, and the build for most pages loads it late. */
const LATE = PROVIDERS.filter(({ name }) => ['webgl', 'webnn'].includes(name));

/** The builds: for most pages, without devices, and one for each provider that is built apart. */
export const FLAVORS = [
  { suffix: '', only: undefined, providers: PROVIDERS.filter((one) => !LATE.includes(one)), late: LATE },
  { suffix: '.wasm', only: [], providers: [] },
  ...LATE.map((one) => ({ suffix: `.${one.name}`, only: undefined, providers: [one] })),
];

/** The build that `py-ort export --runtime minimal` writes a model's kernels into. */
export const MINIMAL = {
  suffix: '.minimal',
  providers: PROVIDERS.filter(({ name }) => name === 'webgpu'),
  linked: true,
};

export const pageScripts = (suffix) => ({ ...PAGE_SCRIPTS, worker: `session_worker${suffix}.mjs` });

/** The version of the whole project: `__version__` of the Python package. */
export async function projectVersion() {
  const text = await readFile(path.join(web, '../py_ort/__init__.py'), 'utf8');
  return /^__version__ = "(.+)"$/m.exec(text)[1];
}

/** The settings of esbuild that all builds of the API share. */
export async function settings({ only, scripts, providers, late, glue, loops, linked, minify, sourcemap, platform }) {
  return {
    ...common,
    minify,
    sourcemap,
    platform,
    plugins: [virtualModules(only, { scripts, providers, late, glue, loops, linked }), smaller],
    define: { PY_ORT_VERSION: JSON.stringify(await projectVersion()) },
  };
}

/**
 * Writes a file that pages load late: it exports a function that is given `require` and returns what the entry exports.
 * The plugin makes the modules external that are in the files of the build.
 */
async function buildLateFile({ folder, minify, sourcemap }, outside, script, entry) {
  await esbuild.build({
    ...common,
    minify,
    sourcemap,
    format: 'cjs',
    plugins: [outside, virtualModules(), smaller],
    banner: { js: 'export default (require) => { const module = {};' },
    footer: { js: 'return module.exports; };' },
    entryPoints: { [path.parse(script).name]: entry },
    outExtension: { '.js': '.mjs' },
    outdir: folder,
  });
}

const OUTSIDE = { path: './outside', external: true };

/**
 * Writes generate.mjs: the loops of decoders and providers' parts of them, which all builds share. All that these
 * modules import of others comes through src/generate/outside.ts, which is whoever's that loads the file.
 */
export async function buildGenerate(options) {
  const outside = {
    name: 'outside',
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ path: name, resolveDir, kind }) => {
        const file = path.resolve(resolveDir, name);
        if (file === path.join(web, 'src/generate/outside')) return OUTSIDE;
        if (kind === 'entry-point' || path.basename(path.dirname(file)) === 'generate') return undefined;
        return { errors: [{ text: `${name}: imported in ${resolveDir}, and is to come through generate/outside` }] };
      });
    },
  };
  await buildLateFile(options, outside, 'generate.mjs', './src/generate/generator.ts');
}

/** Writes py_ort_compiler.mjs: the compiler in a page, and its worker. */
export async function buildPageCompiler({ folder, minify, sourcemap }) {
  const entryPoints = { py_ort_compiler: 'src/api/page_compiler.ts' };
  await esbuild.build({ ...common, minify, sourcemap, outdir: folder, outExtension: { '.js': '.mjs' }, entryPoints });
}

/** Writes provider_NAME.mjs: a provider's folder, whose other imports are virtual:outside of the build. */
export async function buildLateProviders(options) {
  const { sources } = await evaluated(`export { sources } from 'virtual:kernels';`, web);
  const texts = {
    imports: importsOf(LATE),
    sources: `export { kernels } from './imports'; export const sources = ${JSON.stringify(sources)};`,
  };
  for (const provider of LATE) {
    const outside = {
      name: 'outside',
      setup(build) {
        const imports = { path: 'imports', namespace: 'late' };
        build.onResolve({ filter: /^(\.|virtual:kernels$)/ }, ({ path: wanted, resolveDir, namespace }) => {
          if (namespace === 'late') return wanted === './outside' ? OUTSIDE : imports;
          if (wanted === 'virtual:kernels') return { path: 'sources', namespace: 'late' };
          return isInside(provider, path.resolve(resolveDir, wanted)) ? undefined : imports;
        });
        build.onLoad({ filter: /^/, namespace: 'late' }, ({ path: name }) => ({
          contents: texts[name],
          resolveDir: web,
        }));
      },
    };
    await buildLateFile(options, outside, lateScript(provider.name), path.join(provider.folder, 'index.ts'));
  }
}

/** Leaves video frames to a file of their own: as a chunk they would cut the API into more files, which all load. */
const apart = (name) => ({
  name: 'apart',
  setup(build) {
    build.onResolve({ filter: /\/video_frames$/ }, () => ({ path: `./${name}.mjs`, external: true }));
  },
});

/**
 * Writes kernel_modules.json, for minimal runtimes: `modules`, each the body of a function of `require` and `module`
 * with the names of the modules that it requires, and `lists`, the module of each source in kernels.webgpu.json.
 */
export async function buildKernelModules({ folder }) {
  const files = (await readdir(KERNELS, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const known = new Set(files.map((file) => nameOfModule(path.join(KERNELS, file))));
  const apart = {
    name: 'apart',
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ path: wanted, resolveDir, kind }) => {
        if (kind === 'entry-point') return undefined;
        const name = nameOfModule(path.resolve(resolveDir, wanted));
        return { path: known.has(`${name}/index`) ? `${name}/index` : name, external: true };
      });
    },
  };
  const { outputFiles } = await esbuild.build({
    ...common,
    minify: true,
    format: 'cjs',
    write: false,
    plugins: [apart, smaller],
    entryPoints: files.map((file) => path.join(KERNELS, file)),
    outbase: KERNELS,
    outdir: folder,
  });
  const modules = Object.fromEntries(
    outputFiles.map(({ path: file, text }) => {
      const requires = [...text.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name);
      const name = path.relative(folder, file).replace(/\.js$/, '').replaceAll(path.sep, '/');
      return [name, { code: text.trim(), requires: [...new Set(requires)].filter((each) => known.has(each)) }];
    }),
  );
  const lists = Object.fromEntries((await kernelFiles()).map(({ file, source }) => [source, nameOfModule(file)]));
  await writeFile(path.join(folder, 'kernel_modules.json'), JSON.stringify({ lists, modules }));
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
  const own = await settings({ scripts, ...options });
  const api = { ...own, ...shared, plugins: [apart(`${name}-video`), ...own.plugins] };
  const glue = options.platform === 'node' ? undefined : CORE_GLUE;
  const script = { ...(await settings({ scripts, glue, ...options })), ...shared };
  await Promise.all([
    esbuild.build({ ...api, splitting: true, chunkNames: `${name}-[hash]`, entryPoints: { [name]: entry } }),
    esbuild.build({ ...script, entryPoints: { [path.parse(scripts.worker).name]: worker } }),
    esbuild.build({ ...own, ...shared, entryPoints: { [`${name}-video`]: 'src/api/video_frames.ts' } }),
  ]);
  for (const chunk of await readdir(folder))
    if (late.test(chunk) && chunk.endsWith('.mjs')) await commentImports(path.join(folder, chunk));
}
