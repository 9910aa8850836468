// Division as exact as a CPU's. Hardware may be off by a few units in the last place, which is too much where the
// quotient is rounded to a whole number and may lie half way, or is one. Software adapters divide exactly, but have no
// fused multiply-add to mend anything with.
import type { DeviceTraits, Spec } from '../../../contract/kernel';
import { mathFunctions } from './math';

export interface Division extends Spec {
  /** Whether to help; not there where it is not needed. */
  readonly helped?: boolean;
}

export function division({ software }: DeviceTraits): Division {
  return software ? {} : { helped: true };
}

/** What `quotient` needs, in terms of F. */
export function divisionText({ helped }: Division): string {
  return helped ? mathFunctions('divided') : '';
}

export function quotient({ helped }: Division, x: string, by: string): string {
  return helped ? `divided(${x}, ${by})` : `${x} / ${by}`;
}
