// Shared by all bundles of web/src: options of esbuild, and modules that are generated while it runs.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import * as esbuild from 'esbuild';

const web = import.meta.dirname;

/**
 * The files of a folder of src/providers that default-export an array of kernels, by family: each with its path there
 * as its source ("matmul/gemm", "convolution/conv"), whose last part is its stem.
 */
export async function kernelFiles(within = OWN_KERNELS, only) {
  const folder = path.join(web, 'src/providers', within);
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

const { ranks } = JSON.parse(readFileSync(path.join(web, 'src/schema/providers.json'), 'utf8'));

/**
 * The providers with devices, each a folder, the best one first as Python ranks them: those of src/providers, and then
 * those that the environment names in PY_ORT_PROVIDERS, as PATH has folders.
 */
function providerFolders() {
  const own = path.join(web, 'src/providers');
  const more = (process.env.PY_ORT_PROVIDERS ?? '').split(path.delimiter).filter(Boolean);
  const folders = [
    ...readdirSync(own)
      .sort((a, b) => ranks.indexOf(a) - ranks.indexOf(b))
      .map((name) => path.join(own, name)),
    ...more.map((at) => path.resolve(at)),
  ];
  const missing = folders.find((folder) => !existsSync(path.join(folder, 'index.ts')));
  if (missing) throw new Error(`${missing} is no provider: it has no index.ts`);
  return folders.map((folder) => ({ name: path.basename(folder), folder }));
}

export const PROVIDERS = providerFolders();
const namesOf = (providers) => JSON.stringify(providers.map(({ name }) => name));

/** Text of a module: what each of these has in one of its files, where it has that, by its name. */
function byProvider(name, providers, file) {
  const those = providers.filter(({ folder }) => existsSync(path.join(folder, file)));
  const entries = those.map((each, i) => `${JSON.stringify(each.name)}: p${i}`);
  return [
    ...those.map(({ folder }, i) => `import p${i} from ${JSON.stringify(path.join(folder, file))};`),
    `export const ${name} = { ${entries.join(', ')} };`,
  ].join('\n');
}

/** Modules without state and classes: each file of a provider that is loaded late has a copy of those that it uses. */
const COPIED = [
  ...['elements', 'float16', 'resizing', 'shape', 'window'].map((name) => `contract/${name}`),
  ...['blocks', 'counters', 'memory_plan', 'provider'].map((name) => `device/${name}`),
  'schema/dialect',
].map((name) => path.join(web, 'src', name));

const isIn = (folder, file) => !path.relative(folder, file).startsWith('..');

/** True if a late provider's own file has the module of this path, without its extension, in it. */
export const isInside = ({ folder }, file) => COPIED.includes(file) || isIn(folder, file);

/**
 * The names that the modules of a folder import from others, by these modules' paths.
 *
 * @param copied modules that count as the folder's own.
 */
function importedBy(folder, copied = COPIED) {
  const found = new Map();
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.ts'));
  const inside = new Set(files.map((file) => path.join(folder, file)));
  for (const file of inside)
    for (const [, names, from] of readFileSync(file, 'utf8').matchAll(/^import \{([^}]*)\} from '(\.[^']*)';$/gm)) {
      const target = path.resolve(path.dirname(file), from);
      const values = names.split(',').map((each) => each.trim());
      if (copied.includes(target)) inside.add(`${target}.ts`);
      if (copied.includes(target) || isIn(folder, target)) continue;
      const known = found.get(target) ?? new Set();
      for (const each of values) if (each && !each.startsWith('type ')) known.add(each);
      found.set(target, known);
    }
  return found;
}

/**
 * The exports that a build hands to the files of providers that are loaded late, each name once: the kernels of webgpu,
 * and what the files import. A short name for each saves bytes of the build.
 */
function handedTo(late) {
  const fileOf = new Map([['kernels', 'virtual:kernels']]);
  for (const [file, names] of late.flatMap(({ folder }) => [...importedBy(folder)]))
    for (const name of names) {
      if ((fileOf.get(name) ?? file) !== file)
        throw new Error(
          `${name}: ${file} and ${fileOf.get(name)} export it: a provider that is loaded late imports it from one`,
        );
      fileOf.set(name, file);
    }
  return [...fileOf].map(([name, file], i) => ({ name, file, short: `_${i.toString(36)}` }));
}

/** Text of the module that hands a build's code to the files of providers that are loaded late. */
const outsideOf = (late) =>
  late.length === 0
    ? 'export {};'
    : handedTo(late)
        .map(({ name, file, short }) => `export { ${name} as ${short} } from ${JSON.stringify(file)};`)
        .join('\n');

/** Text of the module by which such a file imports that code. */
export const importsOf = (late) =>
  `export { ${handedTo(late).map(({ name, short }) => `${short} as ${name}`)} } from './outside';`;

/** A module's name for others: its path from the kernels' folder. */
export const nameOfModule = (file) => path.relative(KERNELS, file).replace(/\.ts$/, '').replaceAll(path.sep, '/');

/** Text of the module that hands a minimal runtime's code to the modules of kernels: modules by their names. */
function outsideOfKernels() {
  const files = [...importedBy(KERNELS, []).keys()];
  return [
    ...files.map((file, i) => `import * as m${i} from ${JSON.stringify(`virtual:outside/${nameOfModule(file)}`)};`),
    `export const modules = { ${files.map((file, i) => `${JSON.stringify(nameOfModule(file))}: m${i}`).join(', ')} };`,
  ].join('\n');
}

/** Text of one of these modules, without what no kernel imports. */
function partOfOutside(name) {
  const [file, names] = [...importedBy(KERNELS, [])].find(([file]) => nameOfModule(file) === name);
  return `export { ${[...names].join(', ')} } from ${JSON.stringify(file)};`;
}

/** The script of a provider that a build loads late. */
export const lateScript = (name) => `provider_${name}.mjs`;

/** The kernels of a module that names no folder. */
const OWN_KERNELS = 'webgpu/kernels';
export const KERNELS = path.join(web, 'src/providers', OWN_KERNELS);

/** The names of the workers' scripts in a page's assets. The plain one knows no devices. */
export const PAGE_SCRIPTS = {
  worker: 'session_worker.mjs',
  plain: 'session_worker.wasm.mjs',
  thread: 'microkernel_worker.js',
};

const scriptText = (name) => `{ name: '${name}', url: () => new URL('./${name}', import.meta.url) }`;

/**
 * The modules virtual:kernels, the list of kernels and the source of each, virtual:build, what differs between builds
 * of the API, virtual:providers and virtual:parts, what providers with devices are and what they add to generate.mjs,
 * virtual:core, the core's glue, virtual:loops, the contents of generate.mjs, and virtual:outside, the imports of
 * providers that are loaded late.
 *
 * @param only stems of files of kernels; all without it.
 * @param options.providers the elements of PROVIDERS that are in the bundle.
 * @param options.late the providers that have a file of their own.
 * @param options.glue the path of core.mjs, where the bundle has the glue in it.
 * @param options.loops true where the bundle has the loops of decoders in it.
 * @param options.linked true for a minimal runtime, into which Python writes the kernels.
 */
export function virtualModules(
  only,
  { scripts = PAGE_SCRIPTS, providers = PROVIDERS, late = [], glue, loops, linked } = {},
) {
  const offered = PROVIDERS.filter((one) => providers.includes(one) || late.includes(one));
  return {
    name: 'virtual',
    setup(build) {
      build.onResolve({ filter: /^virtual:/ }, ({ path: name }) => ({ path: name, namespace: 'virtual' }));
      build.onLoad({ filter: /^virtual:build$/, namespace: 'virtual' }, () => ({
        contents: [
          byProvider('sides', offered, 'page.ts'),
          `import { CORE_PROVIDER } from './src/contract/providers';`,
          `export const providers = [...${namesOf(offered)}, CORE_PROVIDER];`,
          `export const elsewhere = ${namesOf(PROVIDERS.filter((one) => !offered.includes(one)))};`,
          `export const late = {${late.map(({ name }) => `${name}: ${scriptText(lateScript(name))}`)}};`,
          ...Object.entries(scripts).map(([role, name]) => `export const ${role} = ${scriptText(name)};`),
        ].join('\n'),
        resolveDir: web,
        loader: 'ts',
      }));
      build.onLoad({ filter: /^virtual:outside$/, namespace: 'virtual' }, () => ({
        contents: linked ? outsideOfKernels() : outsideOf(late),
        resolveDir: web,
        loader: 'ts',
      }));
      build.onLoad({ filter: /^virtual:outside\//, namespace: 'virtual' }, ({ path: module }) => ({
        contents: partOfOutside(module.slice('virtual:outside/'.length)),
        resolveDir: web,
        loader: 'ts',
      }));
      const lists = { providers: 'index.ts', parts: 'generate/index.ts' };
      build.onLoad({ filter: /^virtual:(providers|parts)$/, namespace: 'virtual' }, ({ path: module }) => {
        const name = module.slice('virtual:'.length);
        return { contents: byProvider(name, providers, lists[name]), resolveDir: web, loader: 'ts' };
      });
      build.onLoad({ filter: /^virtual:core$/, namespace: 'virtual' }, () => ({
        contents: glue
          ? `export { default as createCore } from ${JSON.stringify(glue)};`
          : 'export const createCore = undefined;',
        resolveDir: web,
      }));
      build.onLoad({ filter: /^virtual:loops$/, namespace: 'virtual' }, () => ({
        contents: loops ? `export * as loops from './src/generate/generator';` : 'export const loops = undefined;',
        resolveDir: web,
        loader: 'ts',
      }));
      build.onLoad({ filter: /^virtual:kernels/, namespace: 'virtual' }, async ({ path: module }) => {
        const within = module.slice('virtual:kernels/'.length);
        if (linked) return { contents: `export * from './src/providers/webgpu/linked_kernels';`, resolveDir: web };
        const files = await kernelFiles(within || OWN_KERNELS, within ? undefined : only);
        const imports = files.map(({ file }, i) => `import k${i} from ${JSON.stringify(file)};`);
        const list = files.map((_, i) => `...k${i}`);
        const sources = files.map(({ source }, i) => `...k${i}.map(() => ${JSON.stringify(source)})`);
        return {
          contents: [
            ...imports,
            `export const kernels = [${list}];`,
            `export const sources = /* @__PURE__ */ (() => [${sources}])();`,
            'export const isMinimal = false;',
          ].join('\n'),
          resolveDir: web,
          loader: 'ts',
        };
      });
    },
  };
}

export const common = { bundle: true, format: 'esm', target: 'es2022', logLevel: 'warning', absWorkingDir: web };

/** The exports of a module that is given as text. */
export async function evaluated(contents, resolveDir) {
  const { outputFiles } = await esbuild.build({
    ...common,
    platform: 'neutral',
    write: false,
    plugins: [virtualModules()],
    mainFields: ['module', 'main'],
    stdin: { contents, resolveDir, loader: 'ts' },
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}
