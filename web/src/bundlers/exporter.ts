// Models of a project, exported into a folder of its own while pages are built.
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
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

/**
 * Exports a model, unless its export is up to date.
 *
 * @param model the ONNX file.
 * @param root the project's folder.
 * @param say told how models are compiled, where `py-ort` is not installed.
 * @returns the file, which the runtime of this package reads.
 */
export async function exported(
  model: string,
  root: string,
  options: PyOrtOptions,
  say: (text: string) => void,
): Promise<string> {
  // A folder for each: files of one name may lie in several.
  const place = createHash('sha256').update(model).digest('hex').slice(0, 16);
  const folder = path.join(root, 'node_modules/.cache/py-ort', place);
  const file = path.join(folder, `${path.parse(model).name}.pyort`);
  await mkdir(folder, { recursive: true });
  const args = ['export', model, '-o', folder, '--update', ...(options.arguments ?? [])];
  await inTurn(() => pyOrt(args, options.command, say));
  const { parts } = await checkExported(file);
  if (parts.length > 0)
    throw new Error(
      `${model} is exported into ${parts.length + 1} files, which bundlers would rename: ` +
        'export it into the folder of static files, and load it by its URL',
    );
  return file;
}
