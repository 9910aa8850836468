// The loader of the plugin for webpack: the exported model instead of the ONNX file.
import { readFile } from 'node:fs/promises';
import { exported, type PyOrtOptions } from './exporter';

/** The part of a loader's context that is used here. */
interface Context {
  readonly resourcePath: string;
  readonly rootContext: string;
  addDependency(file: string): void;
  getOptions(): PyOrtOptions;
  getLogger(name: string): { info(text: string): void };
}

export const raw = true;

export default async function load(this: Context): Promise<Buffer> {
  const log = this.getLogger('py-ort');
  const file = await exported(this.resourcePath, this.rootContext, this.getOptions(), {
    say: (text) => log.info(text),
    reads: (source) => this.addDependency(source),
  });
  return readFile(file);
}
