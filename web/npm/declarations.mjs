// One file of declarations: what the public API says, as tsc writes it, and nothing of what is behind it.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const web = path.dirname(import.meta.dirname);
const source = path.join(web, 'src');

/** Return the declarations that tsc emits for the file and its imports. */
async function emit(entry, folder) {
  const config = path.join(folder, 'tsconfig.json');
  await writeFile(
    config,
    JSON.stringify({
      extends: path.join(web, 'tsconfig.json'),
      compilerOptions: {
        ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: source, outDir: folder },
        typeRoots: [path.join(web, 'node_modules')],
      },
      files: [path.join(web, entry), path.join(source, 'virtual.d.ts')],
      include: [],
    }),
  );
  execFileSync(process.execPath, [path.join(web, 'node_modules/typescript/bin/tsc'), '-p', config], {
    stdio: 'inherit',
  });
}

const DECLARATION =
  /^export (?:default )?(?:declare )?(?:abstract )?(?:type|interface|class|const|function|enum|namespace) (\w+)/;

const VALUE = /^export declare (?:const|class|enum|function) /m;

/** The statements of a file, each with its comment. tsc starts them, and nothing else, at the first column. */
export function statements(text) {
  const found = [];
  let lines = [];
  for (const line of text.split('\n')) {
    const starts = /^(?:import|export|declare|type|interface|\/\*\*)/.test(line);
    const previous = lines.at(-1) ?? '';
    if (starts && lines.length > 0 && !previous.endsWith('*/')) {
      found.push(lines.join('\n'));
      lines = [];
    }
    if (line.trim()) lines.push(line);
  }
  return [...found, lines.join('\n')].filter(Boolean);
}

const withoutComment = (statement) => statement.replace(/^(?:\/\*\*[\s\S]*?\*\/\n|\/\/.*\n)*/, '');

/** A module's declarations by name, and the files that it imports names of. */
async function moduleOf(file) {
  const text = await readFile(file, 'utf8');
  const imports = new Map();
  const declared = new Map();
  const reexports = [];
  const at = (specifier) => path.join(path.dirname(file), `${specifier}.d.ts`);
  for (const statement of statements(text)) {
    const code = withoutComment(statement);
    const from = /from '(\.[^']*)'/.exec(code)?.[1];
    const names = [...(/\{([^}]*)\}/.exec(code)?.[1].matchAll(/(?:type )?(\w+)(?: as (\w+))?/g) ?? [])];
    const space = /^import (?:type )?\* as (\w+)/.exec(code)?.[1];
    if (code.startsWith('import') && space && from) imports.set(space, { file: at(from), space: true });
    else if (code.startsWith('import') && from)
      for (const [, name, as] of names) imports.set(as ?? name, { file: at(from), name });
    else if (from)
      reexports.push({ file: at(from), names: code.includes('*') ? undefined : names.map(([, name]) => name) });
    else {
      const name = (DECLARATION.exec(code) ??
        /^(?:declare )?(?:type|interface|const|class|enum) (\w+)/.exec(code))?.[1];
      if (name) declared.set(name, [...(declared.get(name) ?? []), { statement, exported: code.startsWith('export') }]);
    }
  }
  return { imports, declared, reexports };
}

/** Index files of folders, too. */
async function resolved(file) {
  try {
    await readFile(file);
    return file;
  } catch {
    return file.replace(/\.d\.ts$/, '/index.d.ts');
  }
}

export async function declarations(entry) {
  const folder = await mkdtemp(path.join(tmpdir(), 'py-ort-types-'));
  try {
    await emit(entry, folder);
    return await rolledUp(path.join(folder, path.relative('src', entry).replace(/\.ts$/, '.d.ts')));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function rolledUp(entry) {
  const modules = new Map();
  const load = async (given) => {
    const file = await resolved(given);
    if (!modules.has(file)) modules.set(file, await moduleOf(file));
    return [file, modules.get(file)];
  };
  /** Name: the file that declares it. */
  const taken = new Map();
  const written = [];
  /** The same of those that the API exports. */
  const exported = new Map();

  async function find(given, name) {
    const [file, module] = await load(given);
    if (module.declared.has(name)) return file;
    for (const { file: other, names } of module.reexports) {
      if (names && !names.includes(name)) continue;
      const found = await find(other, name);
      if (found) return found;
    }
    return undefined;
  }

  async function take(given, name) {
    const file = await find(given, name);
    if (!file) throw new Error(`no declaration of ${name} in ${given}`);
    const known = taken.get(name);
    if (known === file) return;
    if (known) throw new Error(`two declarations of ${name}: in ${known} and ${file}`);
    taken.set(name, file);
    const { declared, imports } = modules.get(file);
    const texts = declared.get(name).map(({ statement }) => clean(statement, exported.has(name), imports));
    written.push(...texts);
    for (const word of new Set(
      texts
        .join('\n')
        .replace(/\/\*\*[\s\S]*?\*\//g, '')
        .match(/\b[A-Za-z_]\w*\b/g),
    )) {
      if (word === name) continue;
      if (declared.has(word)) await take(file, word);
      else if (imports.has(word)) await take(imports.get(word).file, imports.get(word).name);
    }
    for (const [space, { file: other, space: whole }] of imports) {
      if (!whole) continue;
      const use = new RegExp(`\\b${space}\\.(\\w+)`, 'g');
      const members = declared.get(name).flatMap(({ statement }) => [...statement.matchAll(use)]);
      for (const [, member] of members) await take(other, member);
    }
  }

  const [, { reexports }] = await load(entry);
  for (const { file, names } of reexports) {
    const [, module] = await load(file);
    const all = [...module.declared].filter(([, each]) => each.some((one) => one.exported)).map(([name]) => name);
    for (const name of names ?? all) exported.set(name, file);
  }
  for (const [name, file] of exported) await take(file, name);
  const body = written.join('\n\n');
  const values = [...exported.keys()].filter((name) =>
    modules
      .get(taken.get(name))
      .declared.get(name)
      .some(({ statement }) => VALUE.test(statement)),
  );
  return [HEAD, globals(body), body, objectOf(values)].join('\n\n');
}

const HEAD = `// py-ort-web: the public API. Made from its source; docs/npm.md says how to use it.

/** TypeScript's type for WebGPU: from its own library (6.0 and newer), or from @webgpu/types if that is installed. */
type WebGpuType<Name extends string> =
  typeof globalThis extends { [key in Name]: { prototype: infer T } } ? T : unknown;`;

/** WebGPU's own types, as far as they are used. */
function globals(text) {
  const code = text.replace(/\/\*\*[\s\S]*?\*\//g, '');
  const names = [...new Set(code.match(/\bGPU[A-Z]\w*/g))].sort();
  return names.map((name) => `type ${name} = WebGpuType<'${name}'>;`).join('\n');
}

/** Members that are private are nobody's business; names of `import * as` need no prefix in one file. */
function clean(statement, isPublic, imports) {
  let text = statement.replace(/^ {4}(?:\/\*\*(?:(?!\*\/)[\s\S])*?\*\/\n {4})?private (?!constructor).*\n/gm, '');
  const aliases = [];
  for (const [space, { space: whole }] of imports) {
    if (!whole) continue;
    // A type whose name is also in a namespace of ours needs another name outside.
    text = text.replace(new RegExp(`\\btype (\\w+) = ${space}\\.\\1;`, 'g'), (_, name) => {
      aliases.push(`type ${space}_${name} = ${name};`);
      return `type ${name} = ${space}_${name};`;
    });
    text = text.replaceAll(new RegExp(`\\b${space}\\.`, 'g'), '');
  }
  return [isPublic ? text : text.replace(/^export /m, ''), ...aliases].join('\n');
}

/** The default export: an object of all values. */
function objectOf(names) {
  const members = names.map((name) => `${name}: typeof ${name}`).join('; ');
  return `declare const ort: { ${members} };\nexport default ort;\n`;
}
