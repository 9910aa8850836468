// The loops of decoders are in a separate file, generate.mjs, which pages without generation do not download. Scripts
// for environments without `import()` include them.
import { loops as own } from 'virtual:loops';
import { lateFile } from '../core/late_file';
import type { Session } from '../session/session';
import type * as loops from './generator';
import * as outside from './outside';

let loaded: Promise<typeof loops> | undefined;

/**
 * The session's generator.
 *
 * @throws RuntimeError if generate.mjs cannot be loaded; the next call tries again.
 */
export async function generatorOf(session: Session): Promise<loops.Generator> {
  loaded ??= own ? Promise.resolve(own) : lateFile<typeof loops>('generate', session.runtime.files.generate, outside);
  loaded.catch(() => {
    loaded = undefined;
  });
  const { Generator } = await loaded;
  session.ensureUsable();
  return Generator.of(session);
}
