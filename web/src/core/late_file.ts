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
    throw notLoaded(code, `${what}: its file`, url, error, what, url.pathname.replace(/^.*\//, ''));
  }
}

/** The error for a file of the runtime; `member` of `env.wasm.wasmPaths` names its URL. */
export function notLoaded(
  code: ErrorCode,
  subject: string,
  { href }: URL,
  error: unknown,
  member: string,
  file = 'the file',
): RuntimeError {
  return new RuntimeError(
    code,
    `${subject} could not be loaded from ${href}: ${messageOf(error)}. Put ${file}, of the same build, beside the ` +
      `other files of the runtime, or name its URL: env.wasm.wasmPaths = { ${member}: URL }`,
  );
}
