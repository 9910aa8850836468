// A plugin of Vite and of Rollup: `import url from './model.onnx?pyort'` is the URL of the exported model.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { exported, type PyOrtOptions, QUERY } from './exporter';

/** The part of a plugin context that is used here. */
interface Context {
  resolve(source: string, importer: string | undefined, options: object): Promise<{ readonly id: string } | null>;
  addWatchFile(file: string): void;
  emitFile(file: object): string;
  info(text: string): void;
}

interface Config {
  readonly root: string;
  readonly base: string;
  readonly command: string;
}

export default function pyOrt(options: PyOrtOptions = {}) {
  let config: Config = { root: process.cwd(), base: '/', command: 'build' };
  return {
    name: 'py-ort',
    enforce: 'pre' as const,
    configResolved(resolved: Config) {
      config = resolved;
    },
    async resolveId(this: Context, source: string, importer: string | undefined) {
      if (!QUERY.test(source)) return null;
      const found = await this.resolve(source.split('?')[0], importer, { skipSelf: true });
      return found && `${found.id}?pyort`;
    },
    async load(this: Context, id: string) {
      if (!QUERY.test(id)) return null;
      const model = path.resolve(id.split('?')[0]);
      const file = await exported(model, config.root, options, {
        say: (text) => this.info(text),
        reads: (source) => this.addWatchFile(source),
      });
      const source = await readFile(file);
      if (config.command === 'serve') {
        // Another URL for other contents: the runtime may keep models by their URLs.
        const digest = createHash('sha256').update(source).digest('hex').slice(0, 16);
        const at = file.split(path.sep).join('/').replace(/^\//, '');
        return `export default ${JSON.stringify(`${config.base}@fs/${encodeURI(at)}?${digest}`)};`;
      }
      const reference = this.emitFile({ type: 'asset', name: path.basename(file), source });
      return `export default import.meta.ROLLUP_FILE_URL_${reference};`;
    },
  };
}
