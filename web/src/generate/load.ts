// The loops of decoders are a file of their own, generate.mjs: pages that generate nothing do not download it. Scripts
// for places without `import()` have them inside.
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
