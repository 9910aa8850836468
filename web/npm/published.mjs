// Additions to the files that pages load: each compressed by Brotli, and its hash.
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';

const compress = promisify(brotliCompress);

/** Files that pages load: not those of Node, nor types. */
const isForPages = (name) => /\.(m?js|wasm)$/.test(name) && !/\.node[-.]/.test(name);

/** Writes NAME.br beside each file, and integrity.json, the hashes as `integrity` of HTML takes them. */
export async function publish(dist) {
  const names = (await readdir(dist)).filter(isForPages).sort();
  const hashes = await Promise.all(
    names.map(async (name) => {
      const bytes = await readFile(path.join(dist, name));
      const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
      await writeFile(path.join(dist, `${name}.br`), await compress(bytes, { params }));
      return [name, `sha384-${createHash('sha384').update(bytes).digest('base64')}`];
    }),
  );
  await writeFile(path.join(dist, 'integrity.json'), `${JSON.stringify(Object.fromEntries(hashes), null, 1)}\n`);
}
