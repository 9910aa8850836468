// The licenses of other projects whose code is in the built files: for the wheel and the npm package.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const web = import.meta.dirname;

export async function notices() {
  const text = (file) => readFile(path.join(web, file), 'utf8').then((found) => found.trim());
  return [
    'These files contain code of other projects.',
    `## flatbuffers (all scripts, core.wasm)\n\n${await text('node_modules/flatbuffers/LICENSE')}`,
    `## Emscripten and its system libraries (core.mjs, core.wasm)\n\n${await text('emscripten.txt')}`,
    `## dagre (report_graph.js)\n\n${await text('node_modules/@dagrejs/dagre/LICENSE')}`,
    '',
  ].join('\n\n');
}
