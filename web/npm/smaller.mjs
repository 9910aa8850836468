// What pages without Python need not download: writers of messages, and how shaders are laid out for readers.
import { readFile } from 'node:fs/promises';

/** What flatc makes of a table besides its reader: builders, the objects of the object API, and ways to them. */
const WRITERS = [
  /^static (start|add|create|end|finish|getSizePrefixed)\w*\([\s\S]*?\n}\n/gm,
  /^unpack(To)?\(.*\{\}\n/gm,
  /^unpack(To)?\([\s\S]*?\n}\n/gm,
  /^export class \w+T [\s\S]*$/gm,
];

/** Tables of the schema as they are read: such pages read plans, and write nothing. */
async function reader(file) {
  const code = WRITERS.reduce((text, writer) => text.replace(writer, ''), await readFile(file, 'utf8'));
  if (code.includes('flatbuffers.Builder'))
    throw new Error(`${file}: flatc writes tables otherwise than is known here`);
  return code;
}

/** Without indentation and lines of comments, which in a template are WGSL's. */
async function unindented(file) {
  const text = await readFile(file, 'utf8');
  return text.replace(/^[ \t]+/gm, '').replace(/^\/\/[^`$\n]*\n/gm, '');
}

export const smaller = {
  name: 'smaller',
  setup(build) {
    const load = (filter, change) =>
      build.onLoad({ filter }, async ({ path }) => ({ contents: await change(path), loader: 'ts' }));
    load(/[\\/]src[\\/]schema[\\/][^\\/]*\.ts$/, reader);
    load(/[\\/]src[\\/](kernels|wgsl|generate|gpu|user_kernels)[\\/].*\.ts$/, unindented);
  },
};
