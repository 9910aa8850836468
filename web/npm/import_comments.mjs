// Tells bundlers to leave `import(url)` alone: esbuild drops comments where it leaves out white space.
import { readFile, writeFile } from 'node:fs/promises';

const COMMENTS = '/* webpackIgnore: true *//* @vite-ignore */';
const IMPORT = /\bimport\((?=\w+\.href\))/g;
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The number with which a segment of a source map begins, and the characters that it takes. */
function firstNumber(segment) {
  let [value, length] = [0, 0];
  for (let digit = 32; digit & 32; length++) {
    digit = DIGITS.indexOf(segment[length]);
    value += (digit & 31) * 32 ** length;
  }
  return [value & 1 ? -(value >>> 1) : value >>> 1, length];
}

function encoded(number) {
  let [text, rest] = ['', number < 0 ? -2 * number + 1 : 2 * number];
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>>= 5;
  } while (rest > 0);
  return text;
}

/** The mappings of a line into which `by` characters were inserted at `column`. */
function shifted(line, column, by) {
  const segments = line.split(',');
  let at = 0;
  for (const [i, segment] of segments.entries()) {
    if (segment === '') return line;
    const [step, length] = firstNumber(segment);
    at += step;
    if (at < column) continue;
    segments[i] = encoded(step + by) + segment.slice(length);
    break;
  }
  return segments.join(',');
}

/** Writes the comments into a script, and what they move into its source map, if it has one. */
export async function commentImports(file) {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const map = await readFile(`${file}.map`, 'utf8').then(JSON.parse, () => undefined);
  const mappings = map?.mappings.split(';');
  lines.forEach((text, i) => {
    // From the last one on, so that the places of the others stay.
    for (const { index, 0: found } of [...text.matchAll(IMPORT)].reverse()) {
      const column = index + found.length;
      lines[i] = lines[i].slice(0, column) + COMMENTS + lines[i].slice(column);
      if (mappings) mappings[i] = shifted(mappings[i], column, COMMENTS.length);
    }
  });
  await writeFile(file, lines.join('\n'));
  if (map) await writeFile(`${file}.map`, JSON.stringify({ ...map, mappings: mappings.join(';') }));
}
