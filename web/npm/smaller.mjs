// Removes code that pages without Python do not need: writers of messages, properties of kernels for the manifest only,
// and the layout of shaders for readers.
import { readFile } from 'node:fs/promises';

/** The code that flatc writes for a table besides its reader: builders, and objects of the object API. */
const WRITERS = [
  /^static (start|add|create|end|finish|getSizePrefixed)\w*\([\s\S]*?\n}\n/gm,
  /^unpack(To)?\(.*\{\}\n/gm,
  /^unpack(To)?\([\s\S]*?\n}\n/gm,
  /^export class \w+T [\s\S]*$/gm,
];

/** Tables of the schema as they are read: such pages read plans, and write nothing. */
function reader(text, file) {
  const code = WRITERS.reduce((rest, writer) => rest.replace(writer, ''), text);
  if (code.includes('flatbuffers.Builder'))
    throw new Error(`${file}: flatc writes tables otherwise than is known here`);
  return code;
}

/** A kernel's properties for Python, which reads them in kernels.webgpu.json: each has its own lines. */
const FACTS = /^([ \t]+)(types|features|requires): (.*,\n|.*\n(\1[ \t].*\n)+\1[\])}].*,\n)/gm;

/** Lines with messages, and those in which spaces separate nothing that repeats. */
const AS_IT_IS = /Error\(|invalid\(|throw|otherwise|message|^\*|^import|^export \*/;
/** Not of minus, behind which a template may write a sign; not behind a type's last character. */
const SPACED = /(?<!>) (=|\+|\*|\/|<=?|>=?|==|!=|&&|\|\||\+=|>>|<<|&|\||->|\^) (?![-*&= ])/g;

/** WGSL without spaces around operators: of all lines, since texts that are alike are packed best. */
function unspaced(text) {
  return text.replace(/^.*$/gm, (line) => (AS_IT_IS.test(line) ? line : line.replace(SPACED, '$1')));
}

/** The reader of flatbuffers' bytes, without what writes them. */
function readingBytes(text, file) {
  const code = text.replace(/^ {4}write\w+\([^)]*\) \{\n[\s\S]*?\n {4}\}\n/gm, '');
  if (code === text) throw new Error(`${file}: methods that write are otherwise than is known here`);
  return code;
}

/** Without indentation and lines of comments, which in a template are WGSL's. */
function unindented(text) {
  return text.replace(/^[ \t]+/gm, '').replace(/^\/\/[^`$\n]*\n/gm, '');
}

export const smaller = {
  name: 'smaller',
  setup(build) {
    const load = (filter, change) =>
      build.onLoad({ filter }, async ({ path }) => ({
        contents: change(await readFile(path, 'utf8'), path),
        loader: 'ts',
      }));
    load(/[\\/]flatbuffers[\\/].*[\\/]byte-buffer\.js$/, readingBytes);
    load(/[\\/]src[\\/]schema[\\/][^\\/]*\.ts$/, reader);
    load(/[\\/]kernels[\\/].*\.ts$/, (text) => unspaced(unindented(text.replace(FACTS, ''))));
    load(/[\\/]src[\\/](providers[\\/]\w+|generate)[\\/].*\.ts$/, (text) => unspaced(unindented(text)));
  },
};
