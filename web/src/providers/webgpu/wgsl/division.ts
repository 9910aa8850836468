// Division as exact as a CPU's. Hardware may be off by a few units in the last place. This is too much if the quotient
// is rounded to a whole number and may be half way, or is a whole number. Software adapters divide exactly, but have no
// fused multiply-add for a correction.
import type { DeviceTraits, Spec } from '../../../contract/kernel';
import { mathFunctions } from './math';

export interface Division extends Spec {
  /** True to correct divisions; absent if that is not needed. */
  readonly helped?: boolean;
}

export function division({ software }: DeviceTraits): Division {
  return software ? {} : { helped: true };
}

/** The text that `quotient` needs, in terms of F. */
export function divisionText({ helped }: Division): string {
  return helped ? mathFunctions('divided') : '';
}

export function quotient({ helped }: Division, x: string, by: string): string {
  return helped ? `divided(${x}, ${by})` : `${x} / ${by}`;
}
