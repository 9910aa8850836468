// A plugin of webpack 5: `import url from './model.onnx?pyort'` is the URL of the exported model.
import { fileURLToPath } from 'node:url';
import { type PyOrtOptions, QUERY } from './exporter';

/** The part of webpack's compiler that is used here. */
interface Compiler {
  readonly options: { readonly module: { readonly rules: unknown[] } };
}

export default class PyOrtPlugin {
  constructor(private readonly options: PyOrtOptions = {}) {}

  apply({ options }: Compiler): void {
    options.module.rules.push({
      resourceQuery: QUERY,
      type: 'asset/resource',
      generator: { filename: '[name].[contenthash].pyort' },
      use: [{ loader: fileURLToPath(new URL('./webpack_loader.mjs', import.meta.url)), options: this.options }],
    });
  }
}
