// Parts that a session's runs share with earlier runs: Python sends them once, and then refers to them by a number.
import { ErrorCode, type RunT } from '../schema';
import { RuntimeError } from '../errors';
import { readValue } from '../wire/messages';
import { isContainer, isOnGpu, type Value } from '../wire/values';
import type { RunOptions } from './json_fields';

interface KeptRun {
  /** The feeds on the GPU. */
  readonly feeds: { readonly [name: string]: Value };
  readonly outputs: readonly string[];
  readonly outputsOnGpu: readonly string[];
  readonly options: RunOptions;
}

export class KeptRuns {
  private readonly bySession = new Map<number, Map<number, KeptRun>>();

  /** All fields of a run, sent in full or as a reference. */
  read({ session, kept, replaces, again, feeds, outputs, outputsOnGpu, options }: RunT, payload: Uint8Array): KeptRun {
    const own = Object.fromEntries(feeds.map((feed) => [feed.name as string, readValue(feed, payload)]));
    const runs = this.bySession.get(session) ?? new Map<number, KeptRun>();
    const known = again ? runs.get(kept) : undefined;
    if (known) return { ...known, feeds: { ...known.feeds, ...own } };
    if (again) throw new RuntimeError(ErrorCode.fail, `this page keeps no run ${kept} of session ${session}`);
    const run: KeptRun = {
      feeds: own,
      outputs: outputs as string[],
      outputsOnGpu: outputsOnGpu as string[],
      options: JSON.parse((options as string | null) || '{}') as RunOptions,
    };
    if (kept > 0) {
      const onGpu = Object.entries(own).filter(([, value]) => !isContainer(value) && isOnGpu(value));
      runs.delete(replaces);
      runs.set(kept, { ...run, feeds: Object.fromEntries(onGpu) });
      this.bySession.set(session, runs);
    }
    return run;
  }

  /** The session was released. */
  drop(session: number): void {
    this.bySession.delete(session);
  }
}
