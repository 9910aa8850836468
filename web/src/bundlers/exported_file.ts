// A check of .pyort files where pages are built: can the runtime of this package read them?
import { open, stat } from 'node:fs/promises';
import path from 'node:path';
import { type Header, headerSize, MAGIC, PREFIX_BYTES, readHeader } from '../package/header';

/** True if a file begins as exported models do; false also for links that lead nowhere or to folders. */
export async function beginsExported(file: string): Promise<boolean> {
  if (!(await stat(file).catch(() => undefined))?.isFile()) return false;
  const opened = await open(file);
  try {
    const prefix = new Uint8Array(MAGIC.length);
    await opened.read(prefix, 0, MAGIC.length, 0);
    return MAGIC.every((byte, i) => prefix[i] === byte);
  } finally {
    await opened.close();
  }
}

/** Reads the header of a file. @throws RuntimeError if this runtime cannot run it, with what to do. */
export async function checkExported(file: string): Promise<Header> {
  const opened = await open(file);
  try {
    const prefix = new Uint8Array(PREFIX_BYTES);
    await opened.read(prefix, 0, PREFIX_BYTES, 0);
    const text = new Uint8Array(headerSize(prefix, file));
    await opened.read(text, 0, text.length, PREFIX_BYTES);
    const header = readHeader(prefix, text, file);
    const parts = header.parts.map(({ name }) => path.join(path.dirname(file), name));
    const sizes = await Promise.all([file, ...parts].map(async (each) => (await stat(each)).size));
    const there = sizes.reduce((sum, size) => sum + size, -PREFIX_BYTES - text.length);
    if (there !== header.size)
      throw new Error(`${file} has ${there} bytes of data, not ${header.size}: copy it again, or export it again`);
    return header;
  } finally {
    await opened.close();
  }
}
