// Files of this build that pages download when they want them. Such a file imports nothing: it exports a function that
// receives what its modules import from the rest, so that there is one copy of each class.
import { messageOf, RuntimeError } from '../errors';
import { ErrorCode } from '../schema';

interface LateFile<T> {
  default(require: () => object): T;
}

/**
 * What the modules in a file export.
 *
 * @param what the user's word for the feature; also the file's member of `env.wasm.wasmPaths`.
 * @param outside what the modules import.
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
