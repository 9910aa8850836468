export interface PyOrtOptions {
  /** The command that is `py-ort`. Default: the one on the PATH, or that of `uvx` or `pipx run`. */
  readonly command?: readonly string[];
  /** More arguments of `py-ort export`, such as `['--provider', 'wasm']`. */
  readonly arguments?: readonly string[];
}

/** A plugin of Vite and of Rollup: `import url from './model.onnx?pyort'` is the URL of the exported model. */
// biome-ignore lint/suspicious/noExplicitAny: a plugin of any version of them
export default function pyOrt(options?: PyOrtOptions): any;
