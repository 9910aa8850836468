// How long a device takes, as profiles tell it.
import type { Tiling } from '../contract/kernel';

export interface ProfileRow {
  /** The program's name. */
  readonly kernel: string;
  readonly workgroups: readonly [number, number, number];
  /** Undefined where the device has no timestamps. */
  readonly ms?: number;
  /** When it began, on the page's clock: the first dispatch is taken to begin when it was submitted. */
  readonly start_ms?: number;
  /** The kernel instance that asked for it, and (outside of devices) the node that this belongs to. */
  readonly instance?: number;
  readonly tiling?: Tiling;
  readonly node?: string;
  readonly op_type?: string;
  readonly node_index?: number;
}

/** What the device took for a run. */
export interface GpuTime {
  readonly passes: number;
  /** The passes, without what lies between them. */
  readonly ms: number;
  /** From the begin of the first one to the end of the last. */
  readonly span_ms: number;
}

/** When a pass began and ended, in nanoseconds of the device's clock. */
export type PassTimes = readonly [begin: bigint, end: bigint];

/** The times of what was submitted together, once it is done. */
export interface DeviceTimes {
  /** The rows of dispatches apart. */
  dispatches(): Promise<ProfileRow[]>;
  /** Each pass; none without timestamps. */
  passes(): Promise<PassTimes[]>;
}

export const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/** Of passes in their order; undefined of none. */
export function gpuTime(passes: readonly PassTimes[]): GpuTime | undefined {
  if (passes.length === 0) return undefined;
  return {
    passes: passes.length,
    ms: passes.reduce((sum, [begin, end]) => sum + milliseconds(begin, end), 0),
    span_ms: milliseconds(passes[0][0], passes[passes.length - 1][1]),
  };
}
