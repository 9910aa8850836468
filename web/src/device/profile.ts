// A device's times, for profiles.
import type { Tiling } from '../contract/kernel';

export interface ProfileRow {
  /** The program's name. */
  readonly kernel: string;
  readonly workgroups: readonly [number, number, number];
  /** Undefined if the device has no timestamps. */
  readonly ms?: number;
  /** Its start, on the page's clock: the first dispatch is assumed to begin when it was submitted. */
  readonly start_ms?: number;
  /** The kernel instance that issued it, and (outside of devices) its node. */
  readonly instance?: number;
  readonly tiling?: Tiling;
  readonly node?: string;
  readonly op_type?: string;
  readonly node_index?: number;
}

/** The device's time for a run. */
export interface GpuTime {
  readonly passes: number;
  /** The time of the passes, without the gaps between them. */
  readonly ms: number;
  /** From the start of the first one to the end of the last. */
  readonly span_ms: number;
}

/** The start and end of a pass, in nanoseconds of the device's clock. */
export type PassTimes = readonly [begin: bigint, end: bigint];

/** The times of one submit, once it has finished. */
export interface DeviceTimes {
  /** A row for each dispatch. */
  dispatches(): Promise<ProfileRow[]>;
  /** Each pass; empty without timestamps. */
  passes(): Promise<PassTimes[]>;
}

export const milliseconds = (from: bigint, to: bigint): number => Number(to - from) / 1e6;

/** For passes in their order; undefined without passes. */
export function gpuTime(passes: readonly PassTimes[]): GpuTime | undefined {
  if (passes.length === 0) return undefined;
  return {
    passes: passes.length,
    ms: passes.reduce((sum, [begin, end]) => sum + milliseconds(begin, end), 0),
    span_ms: milliseconds(passes[0][0], passes[passes.length - 1][1]),
  };
}
