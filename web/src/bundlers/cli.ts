#!/usr/bin/env node
// `npx py-ort-web check FILE…`: do these files and the runtime of this package fit? `npx py-ort-web export …`: `py-ort`
// of the same version.
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { beginsExported, checkExported } from './exported_file';
import { pyOrt } from './python';

const USAGE = `\
npx py-ort-web check FILE…    see that the runtime of this package reads exported models; a folder: all below it
npx py-ort-web export …       run \`py-ort export …\`, of the version of this package where it is not installed`;

/** The exported models of a folder, whatever their names: `py-ort export --keep-names` writes model.onnx. */
async function filesOf(given: string): Promise<string[]> {
  if (!(await stat(given)).isDirectory()) return [given];
  const entries = await readdir(given, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.filter((each) => each.isFile() || each.isSymbolicLink())) {
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    if (file.endsWith('.pyort') || (await beginsExported(file))) found.push(file);
  }
  return found;
}

async function check(given: readonly string[]): Promise<boolean> {
  const files = (await Promise.all(given.map(filesOf))).flat().sort();
  if (files.length === 0) throw new Error(`no exported model in ${given.join(', ')}`);
  let ok = true;
  for (const file of files) {
    try {
      const { producer } = await checkExported(file);
      console.log(`${file}  fits, of ${producer}`);
    } catch (error) {
      ok = false;
      console.error((error as Error).message);
    }
  }
  return ok;
}

const [command, ...args] = process.argv.slice(2);
try {
  if (command === 'check' && args.length > 0) process.exitCode = (await check(args)) ? 0 : 1;
  else if (command === 'export') console.log(await pyOrt(['export', ...args], undefined, console.error));
  else {
    console.error(USAGE);
    process.exitCode = 2;
  }
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
