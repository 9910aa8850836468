// Models of a project, exported into a folder of its own while pages are built.
import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { checkExported } from './exported_file';
import { pyOrt } from './python';

export interface PyOrtOptions {
  /** The command that is `py-ort`. Default: the one on the PATH, or that of `uvx` or `pipx run`. */
  readonly command?: readonly string[];
  /** More arguments of `py-ort export`, such as `['--provider', 'wasm']`. */
  readonly arguments?: readonly string[];
}

/** The query of imports that ask for an exported model. */
export const QUERY = /[?&]pyort\b/;

let running = 0;
const waiting: (() => void)[] = [];

/** As many at once as there are processors. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= availableParallelism()) await new Promise<void>((resolve) => waiting.push(resolve));
  running++;
  try {
    return await work();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

/** A bundler that hears of an export. */
export interface Listener {
  /** How models are compiled, where `py-ort` is not installed. */
  say(text: string): void;
  /** A file that the export reads, also if it fails: the model, its external data, files of user kernels. */
  reads(file: string): void;
}

/** The files that the last export of a folder read, as `py-ort export --json` lists them. */
async function sourcesOf(json: string): Promise<string[]> {
  const text = await readFile(json, 'utf8').catch(() => '{}');
  const { models = [] } = JSON.parse(text) as { readonly models?: readonly { readonly sources: string[] }[] };
  return models.flatMap(({ sources }) => sources.map((file) => path.resolve(file)));
}

/**
 * Exports a model, unless its export is up to date.
 *
 * @param model the ONNX file.
 * @param root the project's folder.
 * @returns the file, which the runtime of this package reads.
 */
export async function exported(
  model: string,
  root: string,
  options: PyOrtOptions,
  listener: Listener,
): Promise<string> {
  listener.reads(model);
  // A folder for each: files of one name may lie in several.
  const place = createHash('sha256').update(model).digest('hex').slice(0, 16);
  const folder = path.join(root, 'node_modules/.cache/py-ort', place);
  const file = path.join(folder, `${path.parse(model).name}.pyort`);
  await mkdir(folder, { recursive: true });
  const json = path.join(folder, 'export.json');
  const args = ['export', model, '-o', folder, '--update', ...(options.arguments ?? []), '--json', json];
  try {
    await inTurn(() => pyOrt(args, options.command, (text) => listener.say(text)));
  } finally {
    for (const source of await sourcesOf(json)) listener.reads(source);
  }
  const { parts } = await checkExported(file);
  if (parts.length > 0)
    throw new Error(
      `${model} is exported into ${parts.length + 1} files, which bundlers would rename: ` +
        'export it into the folder of static files, and load it by its URL',
    );
  return file;
}
