// The source of a session's plan and weights.
import { ErrorCode } from '../schema';
import { messageOf, RuntimeError } from '../errors';
import type { PackagedPlan } from '../package/package';
import type { GoOn } from '../wire/checksum';
import { downloadChunks, type Range, type TakeChunk } from '../wire/download';
import { fetchedBytes } from '../wire/fetching';
import type { PlanWeight } from './plan';

/** The place and form of a weight's bytes; see Form. */
export interface WeightSource {
  readonly offset: number;
  readonly size: number;
  readonly form: number;
  readonly parameters?: readonly number[];
}

export interface ModelSource {
  plan(): Promise<Uint8Array>;
  /** The place of a weight of the plan. */
  place(weight: PlanWeight): WeightSource;
  /** Fetches the wanted ranges, and perhaps more. @param size of all weights, according to the plan. */
  download(size: number, wanted: readonly Range[], take: TakeChunk): Promise<void>;
  /**
   * Receives a weight's bytes, too, and throws after the last ones if they are damaged; undefined if this cannot be
   * checked.
   */
  check?(weight: PlanWeight, goOn: GoOn): TakeChunk | undefined;
}

/** A plan, or its URL, and a file with its weights in the plan's form. @param signal ends downloads. */
export function ofUrls(plan: string | Uint8Array, weightsUrl: string, signal?: AbortSignal): ModelSource {
  return {
    async plan() {
      if (typeof plan !== 'string') return plan;
      return fetchedBytes(plan, signal).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw new RuntimeError(ErrorCode.fail, `the plan could not be fetched: ${messageOf(error)}`);
      });
    },
    place: ({ offset, size }) => ({ offset, size, form: 0 }),
    download: (size, wanted, take) => downloadChunks(weightsUrl, size, wanted, take, signal),
  };
}

/** One of the plans of a .pyort file. */
export function ofPackage(packaged: PackagedPlan): ModelSource {
  return {
    plan: async () => packaged.plan,
    place: ({ index }) => packaged.places[index],
    download: (_, wanted, take) => packaged.download(wanted, take),
    check: ({ index }, goOn) => packaged.check(packaged.places[index], goOn),
  };
}
