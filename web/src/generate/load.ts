// The loops of decoders are a file of their own, generate.mjs: pages that generate nothing do not download it. Scripts
// for places without `import()` have them inside.
import { loops as own } from 'virtual:loops';
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { Session } from '../session/session';
import type * as loops from './generator';
import * as outside from './outside';

/** What generate.mjs exports: the modules of this folder, once they have what they import. */
interface GenerateFile {
  default(require: () => typeof outside): typeof loops;
}

let loaded: Promise<typeof loops> | undefined;

async function load(url: URL): Promise<typeof loops> {
  try {
    const { default: begin } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ url.href)) as GenerateFile;
    return begin(() => outside);
  } catch (error) {
    throw new RuntimeError(
      ErrorCode.fail,
      `generate: its file could not be loaded from ${url.href}: ${messageOf(error)}. Put generate.mjs, of the same ` +
        'build, beside the other files of the runtime, or name its URL: env.wasm.wasmPaths = { generate: URL }',
    );
  }
}

/**
 * The session's generator.
 *
 * @throws RuntimeError if generate.mjs cannot be loaded; the next call tries again.
 */
export async function generatorOf(session: Session): Promise<loops.Generator> {
  loaded ??= own ? Promise.resolve(own) : load(session.runtime.files.generate);
  loaded.catch(() => {
    loaded = undefined;
  });
  const { Generator } = await loaded;
  session.ensureUsable();
  return Generator.of(session);
}
