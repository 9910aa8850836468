// Writes docs/reference/javascript.md: the API of pages and Node, made of its declarations and their comments.
//   node npm/reference.mjs [--check]    --check: only says whether it is as it would be written
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { declarations, statements } from './declarations.mjs';

const web = path.dirname(import.meta.dirname);
const root = path.dirname(web);
const page = path.join(root, 'docs/reference/javascript.md');

/** The names at the top of the page, by heading. All other names follow in the order of their declarations. */
const SECTIONS = {
  Sessions: [
    'InferenceSession',
    'InferenceSessionOptions',
    'InferenceRunOptions',
    'ExecutionProvider',
    'WebGLProvider',
    'WebGpuProvider',
  ],
  Tensors: ['Tensor', 'TensorConstructor', 'TensorFactory', 'TypedTensor', 'ConversionUtils', 'DataTypeMap'],
  Environment: ['env', 'Env', 'WebAssemblyFlags', 'WebGpuFlags', 'WasmFilePaths'],
  Errors: ['RuntimeError', 'ErrorCode', 'ErrorPlace'],
};
const OTHERS = 'Other types';

const HEAD = `# JavaScript

<!-- Made of the declarations by web/npm/reference.mjs. -->

What \`py_ort.mjs\` and the npm package \`py-ort-web\` declare. [Models in pages](../web.md) shows how it is used,
[the npm package](../npm.md) what onnxruntime-web declares besides.`;

const COMMENT = /^\s*\/\*\*[\s\S]*?\*\/\n/;
const CODE = /^(?:export )?(?:declare )?(interface|class|type|const|enum|namespace) (\w+)/;
/** Names that only mean another one in this file. */
const ALIAS = /^type \w+_\w+ = /;

/** A comment as text: its lines, its parameters as a list. */
function prose(comment) {
  const lines = comment.replace(/^\s*\/\*\*|\*\/\s*$/g, '').split('\n');
  const text = lines.map((line) => line.replace(/^\s*\* ?/, '').trim()).join('\n');
  return text
    .trim()
    .replace(/^@param (\w+) /gm, '- `$1`: ')
    .replace(/^@returns /gm, '- returns ')
    .replace(/^@throws (\w+) /gm, '- throws `$1` ');
}

const fenced = (code) => `\`\`\`ts\n${code.trimEnd().replace(/^export (?:declare )?/, '')}\n\`\`\``;

function split(text) {
  const comment = COMMENT.exec(text)?.[0] ?? '';
  return { comment: comment && prose(comment), code: text.slice(comment.length) };
}

/** Of a class or an interface, what is before its members. */
const headOf = (code) => /^[\s\S]*?(?=\{\}?$)/m.exec(code)[0];

/** The members of a class or an interface, each with its comment; overloads in a row are one. */
function members(code) {
  const lines = code
    .slice(headOf(code).length + 1)
    .trimEnd()
    .split('\n')
    .slice(1, -1);
  const found = [];
  let own = [];
  for (const line of lines) {
    own.push(line.slice(2));
    if (/^ {2}(?! |\/|\*)/.test(line) && /[;,]$/.test(line)) {
      found.push(split(own.join('\n')));
      own = [];
    }
  }
  if (own.some((line) => line.trim())) throw new Error(`no member ends here: ${own.join('\n')}`);
  return found.filter(({ code: member }) => !member.startsWith('private '));
}

/** Group the members without a comment. */
function listed(all) {
  const groups = [];
  for (const { comment, code } of all) {
    const last = groups.at(-1);
    if (!comment && last && !last.comment) last.code += `\n${code}`;
    else groups.push({ comment, code });
  }
  return groups.map(({ comment, code }) => [fenced(code), comment].filter(Boolean).join('\n\n'));
}

function described(statement) {
  const { comment, code } = split(statement);
  const [, kind] = CODE.exec(code);
  const all = kind === 'class' || kind === 'interface' ? members(code) : [];
  if (!all.some((member) => member.comment)) return [comment, fenced(code)];
  return [comment, fenced(`${headOf(code)}{ … }`), ...listed(all)];
}

function written(text) {
  const byName = new Map();
  for (const statement of statements(text)) {
    const { code } = split(statement);
    const name = CODE.exec(code)?.[2];
    if (!name || ALIAS.test(code) || /= WebGpuType<|^type WebGpuType|^declare const ort:/.test(code)) continue;
    byName.set(name, [...(byName.get(name) ?? []), statement]);
  }
  const first = Object.values(SECTIONS).flat();
  const unknown = first.filter((name) => !byName.has(name));
  if (unknown.length > 0) throw new Error(`web/npm/reference.mjs names what is not declared: ${unknown.join(', ')}`);
  const others = [...byName.keys()].filter((name) => !first.includes(name));
  const parts = [HEAD];
  for (const [title, names] of Object.entries({ ...SECTIONS, [OTHERS]: others })) {
    parts.push(`## ${title}`);
    for (const name of names) parts.push(`### ${name}`, ...byName.get(name).flatMap(described).filter(Boolean));
  }
  return `${parts.join('\n\n')}\n`;
}

/** As the project's code looks. */
function formatted(text) {
  const biome = path.join(web, 'node_modules/@biomejs/biome/bin/biome');
  const command = [biome, 'format', '--stdin-file-path=web/npm/declarations.ts'];
  return execFileSync(process.execPath, command, { cwd: root, input: text, encoding: 'utf8' });
}

const wanted = written(formatted(await declarations('src/index.ts')));
if (!process.argv.includes('--check')) await writeFile(page, wanted);
else if ((await readFile(page, 'utf8').catch(() => '')) !== wanted) {
  console.error('docs/reference/javascript.md is not what the declarations say: node web/npm/reference.mjs');
  process.exitCode = 1;
}
