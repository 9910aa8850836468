import type { PyOrtOptions } from './vite.js';

export type { PyOrtOptions };

/** A plugin of webpack 5: `import url from './model.onnx?pyort'` is the URL of the exported model. */
export default class PyOrtPlugin {
  constructor(options?: PyOrtOptions);
  // biome-ignore lint/suspicious/noExplicitAny: the compiler of any version of it
  apply(compiler: any): void;
}
