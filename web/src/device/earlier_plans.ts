// Plans of segments, reused for others that differ from them in sizes only. A decoder's caches grow by a row with each
// step, and planning memory costs more than the rest of a step. A tensor that has grown a little therefore gets room
// for further growth, and while that lasts, all tensors keep their places.
import { type Lifetime, roundUp } from './memory_plan';
import type { Access, SegmentPlan } from './segment_plan';

export interface EarlierPlan<P> {
  /** With the bytes that the plan has room for. */
  readonly tensors: readonly Lifetime[];
  readonly accesses: readonly Access[];
  readonly places: ReadonlyMap<number, P>;
  readonly plan: SegmentPlan;
}

/** The number of plans kept. */
const KEPT = 16;
/** A tensor that has grown by at most this share of its size is expected to grow again. */
const LITTLE = 1 / 8;
/** Room is added in steps: of this share of the size's power of two, and of at least this many bytes. */
const STEP = 1 / 4;
const LEAST = 4 << 10;
/** A plan with room for more than this factor of the need is replaced by a smaller one, beyond this many bytes. */
const TOO_MUCH = 1.5;
const NEVER_TOO_MUCH = 1 << 20;

/** `P`: the place of a tensor. */
export class EarlierPlans<P> {
  private plans: EarlierPlan<P>[] = [];

  /** A plan that fits these tensors, and whose buffers are all `there`. */
  find(
    tensors: readonly Lifetime[],
    accesses: readonly Access[],
    there: (place: P) => boolean,
  ): EarlierPlan<P> | undefined {
    const needed = sum(tensors);
    return this.plans.find(
      (plan) =>
        sum(plan.tensors) <= Math.max(TOO_MUCH * needed, NEVER_TOO_MUCH) &&
        alike(plan, tensors, accesses) &&
        tensors.every(({ bytes }, i) => bytes <= plan.tensors[i].bytes) &&
        [...plan.places.values()].every(there),
    );
  }

  /** The tensors, with room for those that have grown a little since the last similar plan. */
  withRoom(tensors: readonly Lifetime[], accesses: readonly Access[]): readonly Lifetime[] {
    const last = this.plans.find((plan) => alike(plan, tensors, accesses));
    if (!last) return tensors;
    return tensors.map((tensor, i) => {
      const { bytes } = tensor;
      const before = last.tensors[i].bytes;
      const grows = bytes > before && bytes - before <= LITTLE * before;
      return grows
        ? { ...tensor, bytes: roundUp(bytes + 1, Math.max(LEAST, STEP * 2 ** Math.floor(Math.log2(bytes)))) }
        : tensor;
    });
  }

  remember(plan: EarlierPlan<P>): void {
    this.plans = [plan, ...this.plans.filter((other) => !alike(other, plan.tensors, plan.accesses))].slice(0, KEPT);
  }
}

function sum(tensors: readonly Lifetime[]): number {
  return tensors.reduce((total, { bytes }) => total + bytes, 0);
}

/** True if the same commands use the same tensors, whatever their sizes and the other contents of memory. */
function alike(plan: EarlierPlan<unknown>, tensors: readonly Lifetime[], accesses: readonly Access[]): boolean {
  if (plan.tensors.length !== tensors.length || plan.accesses.length !== accesses.length) return false;
  const sameTensors = tensors.every(({ id, start, end }, i) => {
    const other = plan.tensors[i];
    return other.id === id && other.start === start && other.end === end;
  });
  if (!sameTensors) return false;
  const planned = new Set(tensors.map(({ id }) => id));
  const sameIds = (a: readonly number[], b: readonly number[]) =>
    a.length === b.length && a.every((id, i) => id === b[i] || (!planned.has(id) && !planned.has(b[i])));
  return accesses.every(({ reads, writes, group, alias, inPlace = [] }, i) => {
    const other = plan.accesses[i];
    return (
      group === other.group &&
      alias === other.alias &&
      sameIds(reads, other.reads) &&
      sameIds(writes, other.writes) &&
      inPlace.length === (other.inPlace ?? []).length &&
      inPlace.every(([read, write], k) => other.inPlace![k][0] === read && other.inPlace![k][1] === write)
    );
  });
}
