// Files of this build that pages download on demand. Such a file imports nothing: it exports a function that receives
// its imports from the main file, so that each class exists once.
import { messageOf, RuntimeError } from '../errors';
import { ErrorCode } from '../schema';

interface LateFile<T> {
  default(require: () => object): T;
}

/**
 * Load a file; return the exports of its modules.
 *
 * @param what the user's word for the feature; also the file's member of `env.wasm.wasmPaths`.
 * @param outside the modules' imports.
 * @throws RuntimeError of this code if the file cannot be loaded.
 */
export async function lateFile<T>(what: string, url: URL, outside: object, code = ErrorCode.fail): Promise<T> {
  try {
    const { default: begin } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ url.href)) as LateFile<T>;
    return begin(() => outside);
  } catch (error) {
    const name = url.pathname.replace(/^.*\//, '');
    throw new RuntimeError(
      code,
      `${what}: its file could not be loaded from ${url.href}: ${messageOf(error)}. Put ${name}, of the same build, ` +
        `beside the other files of the runtime, or name its URL: env.wasm.wasmPaths = { ${what}: URL }`,
    );
  }
}
